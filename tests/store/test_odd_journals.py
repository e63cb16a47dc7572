"""Journals whose lines can be read and say what no service wrote: they hold up no other journal's index."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, select
from testkit import journals

from cliffwatch.analysis.journal_series import UPDATED_NOTE
from cliffwatch.app.index import index_run, rebuild
from cliffwatch.base.errors import Problem
from cliffwatch.journal import Event, EventLog, EventType, files
from cliffwatch.model.request import Submission
from cliffwatch.store.database import Database
from cliffwatch.store.models import FindingRow, RunRow, WorkloadRow
from cliffwatch.store.workloads import put_workload


@pytest.mark.parametrize(
    ("detail", "indexed"),
    [
        ({"replaced_durations": 5}, ["two"]),
        ({"workload_version": 10**30}, ["two"]),
        ({"workload_version": 3, "replaced_durations": {"soak": "xx"}}, ["one", "two"]),
    ],
)
def test_a_journal_that_says_something_odd_keeps_no_other_from_being_indexed(
    database: Database, tmp_path: Path, detail: dict[str, Any], indexed: list[str]
) -> None:
    odd = journals.queue(tmp_path, "one")
    journals.queue(tmp_path, "two")
    first, *others = (odd / files.EVENTS).read_text().splitlines()
    begin = json.loads(first)
    begin.pop("crc32", None)
    begin["detail"] |= detail
    (odd / files.EVENTS).write_text("\n".join([json.dumps(begin), *others]) + "\n")
    with database.session() as session:
        report = rebuild(session, tmp_path)
    assert {name: len(messages) for name, messages in report.faults.items()} == {"one": 1}
    with database.snapshot() as session:
        assert list(session.scalars(select(RunRow.id).order_by(RunRow.id))) == indexed


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b'{"seq":9223372036854775807,"start":1,"end":2,"phase":"soak","counters":{},"gauges":{},"latency":{},'
        b'"latency_range":[0,0]}',
    ],
    ids=["deep", "last of all"],
)
def test_windows_that_no_worker_writes_hide_no_run_whose_events_are_sound(
    database: Database, tmp_path: Path, line: bytes
) -> None:
    directory = journals.queue(tmp_path, "one")
    journals.start(directory)
    journals.measure(directory, 2)
    with (directory / files.WINDOWS).open("ab") as windows:
        windows.write(line + b"\n")
    with database.session() as session:
        assert index_run(session, directory).windows == 2


def test_findings_are_read_once_however_many_are_restated(database: Database, tmp_path: Path) -> None:
    directory = journals.queue(tmp_path, "one")
    log = EventLog(directory)
    found = [{"kind": "cliff", "series": "publish.p99", "onset": float(number)} for number in range(20)]
    for detail in found:
        log.append(Event(1.0, EventType.FINDING, "cliff", detail))
    for detail in found:
        log.append(Event(2.0, EventType.NOTE, UPDATED_NOTE, detail | {"ratio": 7.0}))
    reads: list[str] = []

    with database.session() as session:
        engine = session.get_bind()

        def read(_: object, __: object, statement: str, *___: object) -> None:
            if statement.startswith("SELECT") and "FROM findings" in statement:
                reads.append(statement)

        event.listen(engine, "before_cursor_execute", read)
        try:
            index_run(session, directory)
        finally:
            event.remove(engine, "before_cursor_execute", read)
    assert len(reads) == 1
    with database.snapshot() as session:
        assert [row.detail["ratio"] for row in session.scalars(select(FindingRow))] == [7.0] * 20


def test_an_order_that_is_none_is_refused_with_its_fields(database: Database, tmp_path: Path) -> None:
    directory = journals.queue(tmp_path, "one")
    order = json.loads((directory / files.ORDER).read_text())
    (directory / files.ORDER).write_text(json.dumps(order | {"created_at": "yesterday", "odd": 1}))
    with database.session() as session, pytest.raises(Problem) as refused:
        index_run(session, directory)
    assert refused.value.detail.startswith(f"{directory / files.ORDER} does not hold an order: ")
    assert "created_at: 'yesterday' is not a number" in refused.value.detail
    assert "pydantic" not in refused.value.detail


def test_of_findings_that_are_alike_only_the_newest_are_restated(database: Database, tmp_path: Path) -> None:
    """Otherwise each note would cost as much as there are of them."""
    directory = journals.queue(tmp_path, "one")
    log = EventLog(directory)
    alike = {"kind": "cliff", "series": "publish.p99", "onset": 7.0}
    for _ in range(10):
        log.append(Event(1.0, EventType.FINDING, "cliff", alike))
    log.append(Event(2.0, EventType.NOTE, UPDATED_NOTE, alike | {"ratio": 7.0}))
    with database.session() as session:
        index_run(session, directory)
    with database.snapshot() as session:
        rows = session.scalars(select(FindingRow).order_by(FindingRow.event_id))
        assert [row.detail.get("ratio") for row in rows] == [None] * 2 + [7.0] * 8


@pytest.mark.parametrize("digest", ["of its own", "another"])
def test_a_rebuild_repairs_a_stored_workload_that_is_damaged(database: Database, tmp_path: Path, digest: str) -> None:
    journals.queue(tmp_path, "one", submission=Submission("synthetic:nowhere", "1" * 64, workload_version=1))
    with database.session() as session:
        row, _ = put_workload(session, journals.synthetic_workload(), 1.0)
        row.document = {}
        if digest == "another":
            row.digest = "0" * 64
        assert rebuild(session, tmp_path).faults == {}
    with database.snapshot() as session:
        (stored,) = session.scalars(select(WorkloadRow))
        assert stored.document == journals.synthetic_workload().model_dump(mode="json")
