import shutil
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from testkit import journals
from testkit.journals import START

from cliffwatch.app.index import index_missing, index_run, journals_in, rebuild
from cliffwatch.base import durable
from cliffwatch.base.errors import Code, Problem
from cliffwatch.journal import Event, EventLog, EventType, JournalFault, files
from cliffwatch.journal.state import change_state
from cliffwatch.model.request import Submission
from cliffwatch.model.run_state import RunState
from cliffwatch.model.workload import DurationOverrides
from cliffwatch.store.database import Database
from cliffwatch.store.models import BaseRow, FindingRow, RunRow, ScheduleRow, WorkloadRow
from cliffwatch.store.queries import findings_page, runs_page, unfinished_runs
from cliffwatch.store.tokens import ensure_first_token, find_token
from cliffwatch.store.workloads import put_workload


def contents(database: Database, table: type[BaseRow]) -> list[dict[str, Any]]:
    with database.snapshot() as session:
        rows = session.scalars(select(table).order_by(*table.__table__.primary_key))
        return [{column.key: getattr(row, column.key) for column in table.__table__.columns} for row in rows]


def index(database: Database, directory: Path) -> dict[str, Any]:
    with database.session() as session:
        index_run(session, directory)
    with database.snapshot() as session:
        row = session.get_one(RunRow, directory.name)
        return {column.key: getattr(row, column.key) for column in RunRow.__table__.columns}


def test_a_row_says_what_the_journal_says_at_every_step(database: Database, tmp_path: Path) -> None:
    directory = journals.queue(tmp_path, "one", schedule_id="nightly")
    row = index(database, directory)
    assert (row["state"], row["workload_name"], row["engine"], row["target"], row["schedule_id"]) == (
        "queued", "steady", "synthetic", "synthetic:nowhere", "nightly",
    )  # fmt: skip
    assert (row["planned_seconds"], row["windows"], row["load_start"]) == (60.0, 0, None)
    journals.start(directory)
    journals.measure(directory, 3)
    row = index(database, directory)
    assert (row["state"], row["phase"], row["started_at"]) == ("running", "soak", START + 2)
    assert (row["windows"], row["last_window_end"]) == (3, START + 5)
    journals.find(directory)
    journals.measure(directory, 2)
    journals.finish(directory, "degraded")
    row = index(database, directory)
    assert (row["state"], row["verdict"], row["reasons"]) == ("finished", "degraded", ["as it was made"])
    assert (row["windows"], row["finished_at"], row["load_stop"]) == (5, START + 66, START + 62)
    assert [(item["run_id"], item["name"]) for item in contents(database, FindingRow)] == [("one", "cliff")]


def test_indexing_again_changes_nothing_and_reads_only_what_is_new(database: Database, tmp_path: Path) -> None:
    directory = journals.queue(tmp_path, "one")
    journals.start(directory)
    journals.find(directory)
    row = index(database, directory)
    assert index(database, directory) == row
    assert row["events_offset_bytes"] == (directory / files.EVENTS).stat().st_size
    # What was read once is not read again: the database would have it twice, or fail.
    content = (directory / files.EVENTS).read_bytes()
    (directory / files.EVENTS).write_bytes(b"#" * (len(content) - 1) + b"\n")
    journals.find(directory, "step")
    assert index(database, directory)["state"] == "running"
    assert [item["name"] for item in contents(database, FindingRow)] == ["cliff", "step"]


def test_a_journal_that_was_put_back_to_an_earlier_state_is_read_from_its_start(
    database: Database, tmp_path: Path
) -> None:
    directory = journals.queue(tmp_path, "one")
    queued = (directory / files.EVENTS).read_bytes()
    journals.start(directory)
    journals.find(directory)
    index(database, directory)
    (directory / files.EVENTS).write_bytes(queued)
    assert index(database, directory)["state"] == "queued"
    assert contents(database, FindingRow) == []


def test_a_run_that_is_accepted_while_the_index_is_rebuilt_stays_in_it(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journals.queue(tmp_path, "one")
    listed = journals_in(tmp_path)
    index(database, journals.queue(tmp_path, "two"))
    index(database, gone := journals.queue(tmp_path, "three"))
    shutil.rmtree(gone)
    # Stands for one that was placed right after the directory was listed.
    monkeypatch.setattr("cliffwatch.app.index.journals_in", lambda _: listed)
    with database.session() as session:
        rebuild(session, tmp_path)
    assert {row["id"] for row in contents(database, RunRow)} == {"one", "two"}


def test_a_damaged_event_is_skipped_and_reported(database: Database, tmp_path: Path) -> None:
    directory = journals.queue(tmp_path, "one")
    with (directory / files.EVENTS).open("a") as file:
        file.write('{"at": 1, "type": "find\n')
    EventLog(directory).append(Event(START, EventType.STATE, "levitating"))
    journals.find(directory)
    faults: list[JournalFault] = []
    with database.session() as session:
        assert index_run(session, directory, faults).state == "queued"
    assert [(fault.file, fault.line) for fault in faults] == [(files.EVENTS, 2), (files.EVENTS, 3)]
    assert [item["event_id"] for item in contents(database, FindingRow)] == [4]


@pytest.mark.parametrize("damage", ["not json", "[]", '{"run_id": "one"}'])
def test_an_order_that_cannot_be_read_is_a_problem(database: Database, tmp_path: Path, damage: str) -> None:
    directory = journals.queue(tmp_path, "one")
    (directory / files.ORDER).write_text(damage)
    with pytest.raises(Problem) as caught, database.session() as session:
        index_run(session, directory)
    assert caught.value.code is Code.JOURNAL_UNREADABLE
    assert files.ORDER in caught.value.detail


def test_a_journal_under_another_name_is_a_problem(database: Database, tmp_path: Path) -> None:
    directory = journals.queue(tmp_path, "one").rename(tmp_path / "two")
    with pytest.raises(Problem, match="another run, one"), database.session() as session:
        index_run(session, directory)


def populate(database: Database, runs_directory: Path) -> None:
    """Runs at every stage, from a stored workload with and without other durations, and from a document."""
    workload = journals.synthetic_workload()
    longer = workload.with_durations(DurationOverrides(soak="2m"))
    with database.session() as session:
        put_workload(session, journals.synthetic_workload(description="draft"), START - 20)
        put_workload(session, workload, START)
    stored = Submission("synthetic:nowhere", "1" * 64, workload_version=2)
    replaced = Submission("synthetic:nowhere", "2" * 64, workload_version=2, replaced_durations={"soak": "1m"})
    steps = {
        "document": journals.queue(runs_directory, "document", at=START - 10),
        "stored": journals.queue(runs_directory, "stored", workload=workload, submission=stored),
        "replaced": journals.queue(runs_directory, "replaced", workload=longer, submission=replaced),
    }
    for directory in steps.values():
        index(database, directory)
    for name in ("stored", "replaced"):
        journals.start(steps[name])
        index(database, steps[name])
        journals.measure(steps[name], 2)
        journals.find(steps[name])
        index(database, steps[name])
    journals.finish(steps["stored"])
    index(database, steps["stored"])


def test_a_rebuilt_index_is_what_live_indexing_made(database: Database, tmp_path: Path) -> None:
    populate(database, tmp_path)
    before = [contents(database, table) for table in (RunRow, FindingRow, WorkloadRow)]
    with database.session() as session:
        report = rebuild(session, tmp_path)
    assert (report.indexed, report.faults) == (3, {})
    assert [contents(database, table) for table in (RunRow, FindingRow, WorkloadRow)] == before


def test_a_lost_database_is_made_again_from_journals(database: Database, tmp_path: Path) -> None:
    populate(database, tmp_path)
    runs, findings = contents(database, RunRow), contents(database, FindingRow)
    used = [item for item in contents(database, WorkloadRow) if item["version"] == 2]
    with database.session() as session:
        for table in reversed(BaseRow.metadata.sorted_tables):
            session.execute(table.delete())
    with database.session() as session:
        rebuild(session, tmp_path)
    assert contents(database, RunRow) == runs
    assert contents(database, FindingRow) == findings
    assert [{**item, "id": used[0]["id"]} for item in contents(database, WorkloadRow)] == used


def test_a_rebuild_gives_a_version_back_to_the_runs_that_used_it(database: Database, tmp_path: Path) -> None:
    journals.queue(tmp_path, "old", submission=Submission("synthetic:nowhere", "1" * 64, workload_version=1))
    with database.session() as session:
        put_workload(session, journals.synthetic_workload(description="other"), START)
        rebuild(session, tmp_path)
    documents = [(item["version"], item["document"]["description"]) for item in contents(database, WorkloadRow)]
    assert documents == [(1, ""), (2, "other")]


def test_a_rebuild_keeps_schedules_and_tokens(database: Database, tmp_path: Path) -> None:
    with database.session() as session:
        text = ensure_first_token(session, 1.0)
        assert text is not None
        session.add(
            ScheduleRow(
                id="s", name="s", request={}, trigger={}, enabled=True, next_fire_at=5.0, created_at=1.0, created_by="x"
            )
        )
    with database.session() as session:
        rebuild(session, tmp_path)
    with database.snapshot() as session:
        assert find_token(session, text) is not None
        assert session.get(ScheduleRow, "s") is not None


def test_a_damaged_journal_is_reported_and_the_others_are_indexed(database: Database, tmp_path: Path) -> None:
    for name in ("good", "no-order", "no-events", "torn"):
        journals.queue(tmp_path, name)
    (tmp_path / "no-order" / files.ORDER).unlink()
    (tmp_path / "no-events" / files.EVENTS).unlink()
    with (tmp_path / "torn" / files.EVENTS).open("a") as file:
        file.write("torn\n")
    (tmp_path / ".being-made").mkdir()
    with database.session() as session:
        report = rebuild(session, tmp_path)
    assert sorted(item["id"] for item in contents(database, RunRow)) == ["good", "torn"]
    assert report.indexed == 2
    assert sorted(report.faults) == ["no-events", "no-order", "torn"]
    assert "line 2" in report.faults["torn"][0]


def test_a_rebuild_keeps_the_row_of_a_journal_that_cannot_be_read(database: Database, tmp_path: Path) -> None:
    for name in ("one", "two"):
        directory = journals.queue(tmp_path, name)
        journals.start(directory)
        journals.find(directory)
        index(database, directory)
    before = contents(database, RunRow), contents(database, FindingRow)
    (tmp_path / "one" / files.ORDER).write_bytes(b"\0" * 100)
    with database.session() as session:
        assert list(rebuild(session, tmp_path).faults) == ["one"]
    assert (contents(database, RunRow), contents(database, FindingRow)) == before


def test_a_run_whose_service_died_before_indexing_it_is_found(database: Database, tmp_path: Path) -> None:
    index(database, journals.queue(tmp_path, "known"))
    journals.queue(tmp_path, "unknown")
    with database.session() as session:
        assert index_missing(session, tmp_path).indexed == 1
    with database.snapshot() as session:
        assert {row.id for row in unfinished_runs(session)} == {"known", "unknown"}
        assert index_missing(session, tmp_path / "not-there").indexed == 0


def test_a_state_directory_that_was_moved_has_its_journals_where_it_is(database: Database, tmp_path: Path) -> None:
    before, now = tmp_path / "before", tmp_path / "now"
    directory = journals.queue(before, "one")
    journals.start(directory)
    journals.find(directory)
    index(database, directory)
    before.rename(now)
    with database.session() as session:
        assert index_missing(session, now).indexed == 1
    with database.snapshot() as session:
        assert [row.directory for row in unfinished_runs(session)] == [str(now / "one")]
        assert [row.run_id for row in session.scalars(select(FindingRow))] == ["one"]
    with database.session() as session:
        assert index_missing(session, now).indexed == 0


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_run_whose_last_event_a_power_cut_took_is_not_what_it_was(
    database: Database, tmp_path: Path, is_gone: bool
) -> None:
    """The index had read it before it was on the disk."""
    directory = journals.queue(tmp_path, "one")
    journals.start(directory)
    journals.finish(directory)
    assert index(database, directory)["state"] == "finished"
    path = directory / files.EVENTS
    *kept, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(kept) + (b"" if is_gone else bytes(len(last))))
    with database.session() as session:
        assert index_missing(session, tmp_path).indexed == 1
    with database.snapshot() as session:
        assert [(row.id, row.state) for row in unfinished_runs(session)] == [("one", "reporting")]


def test_a_journal_whose_events_cannot_be_opened_keeps_its_row_and_no_service_down(
    database: Database, tmp_path: Path
) -> None:
    directory = journals.queue(tmp_path, "one")
    index(database, directory)
    before = contents(database, RunRow)
    (directory / files.EVENTS).unlink()
    (directory / files.EVENTS).mkdir()
    with database.session() as session:
        index_missing(session, tmp_path)
    assert contents(database, RunRow) == before
    (directory / files.EVENTS).rmdir()


def test_runs_are_listed_newest_first_page_by_page(database: Database, tmp_path: Path) -> None:
    for number in range(5):
        # Two runs share a moment: the id decides between them.
        directory = journals.queue(tmp_path, f"run-{number}", at=START + number // 2)
        if number == 4:
            change_state(EventLog(directory), RunState.FINISHED, START + 9, {"verdict": "stopped"})
        index(database, directory)
    with database.snapshot() as session:
        everything = [row.id for row in runs_page(session, 10)]
        assert everything == ["run-4", "run-3", "run-2", "run-1", "run-0"]
        seen: list[str] = []
        after: list[Any] | None = None
        while page := runs_page(session, 2, after):
            seen += [row.id for row in page]
            after = [page[-1].created_at, page[-1].id]
        assert seen == everything
        assert [row.id for row in runs_page(session, 10, state="finished")] == ["run-4"]
        assert runs_page(session, 10, workload="another") == []
        assert [row.id for row in unfinished_runs(session)] == ["run-0", "run-1", "run-2", "run-3"]


def test_findings_are_listed_newest_first(database: Database, tmp_path: Path) -> None:
    for name in ("a", "b"):
        directory = journals.queue(tmp_path, name)
        journals.find(directory, "cliff", START + 10)
        journals.find(directory, "recovery", START + 20)
        index(database, directory)
    with database.snapshot() as session:
        rows = findings_page(session, 10)
        assert [(row.name, row.run_id) for row in rows] == [
            ("recovery", "b"), ("recovery", "a"), ("cliff", "b"), ("cliff", "a"),
        ]  # fmt: skip
        third = findings_page(session, 1, [rows[1].at, rows[1].run_id, rows[1].event_id])
        assert [(row.name, row.run_id) for row in third] == [("cliff", "b")]
        assert [row.name for row in findings_page(session, 10, run_id="a")] == ["recovery", "cliff"]


def report(**changes: Any) -> dict[str, Any]:
    """As much of a report as figures are read off."""
    body: dict[str, Any] = {
        "latency": {"append": {"load": {"count": 9, "p50_seconds": 0.002, "p99_seconds": 0.004, "max_seconds": 0.1}}},
        "throughput": {"load": {"operations_per_second": 10.0, "bytes_per_second": 40_960.0}},
        "totals": {"counters": {"device_write_operations": 50, "device_write_milliseconds": 100}},
        "findings": [
            {"kind": "recovery", "degrades": False, "onset_seconds": 5.0, "ratio": 1.1},
            {"kind": "cliff", "degrades": True, "onset_seconds": 20.0, "ratio": 34.0},
        ],
    }
    return body | changes


def finished(runs_directory: Path, run_id: str) -> Path:
    directory = journals.queue(runs_directory, run_id)
    journals.start(directory)
    journals.measure(directory, 3)
    journals.finish(directory, "degraded")
    return directory


def test_a_finished_run_has_the_figures_of_its_report(database: Database, tmp_path: Path) -> None:
    directory = finished(tmp_path, "one")
    durable.write_json_durably(directory / files.REPORT_JSON, report())
    row = index(database, directory)
    assert row["figures"] == {
        "latency": "append",
        "p50_seconds": 0.002,
        "p99_seconds": 0.004,
        "max_seconds": 0.1,
        "operations_per_second": 10.0,
        "bytes_per_second": 40_960.0,
        "device_write_seconds": 0.002,
        "onset": {"kind": "cliff", "seconds": 20.0, "ratio": 34.0},
    }
    assert [at for at, *_ in row["curve"]] == [START + 3, START + 4, START + 5]


def test_a_report_that_came_later_gives_its_figures_at_the_next_start(database: Database, tmp_path: Path) -> None:
    directory = finished(tmp_path, "one")
    assert index(database, directory)["figures"] is None
    durable.write_json_durably(directory / files.REPORT_JSON, report(findings=[]))
    with database.session() as session:
        assert index_missing(session, tmp_path).indexed == 1
    with database.session() as session:
        assert index_missing(session, tmp_path).indexed == 0
        assert session.get_one(RunRow, "one").figures["onset"] is None  # type: ignore[index]


def test_a_report_that_is_none_is_named_and_keeps_no_run_from_the_index(database: Database, tmp_path: Path) -> None:
    directory = finished(tmp_path, "one")
    reports: list[dict[str, Any]] = [{}, {"latency": []}, report(findings=[1]), report(latency={"append": {}})]
    for damaged in reports:
        durable.write_json_durably(directory / files.REPORT_JSON, damaged)
        with database.session() as session:
            faults: list[JournalFault] = []
            assert index_run(session, directory, faults).figures is None
        assert [fault.file for fault in faults] == [files.REPORT_JSON]


def test_runs_are_found_by_verdict(database: Database, tmp_path: Path) -> None:
    index(database, finished(tmp_path, "one"))
    index(database, journals.queue(tmp_path, "two"))
    with database.snapshot() as session:
        assert [row.id for row in runs_page(session, 10, verdict="degraded")] == ["one"]
        assert runs_page(session, 10, verdict="pass") == []
