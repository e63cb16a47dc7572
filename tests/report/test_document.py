"""report.json: what it says of a journal, and that it always says the same."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from testkit.recorded_runs import LOAD_START, Ending, GapEvent, JournalPlan, at_window, make_journal
from tests.report.documents import document_of

from cliffwatch.analysis.verdict import RULES
from cliffwatch.base.histogram import Histogram
from cliffwatch.journal import Event, EventLog, EventType
from cliffwatch.journal.annotated import annotated
from cliffwatch.model.annotations import Annotations
from cliffwatch.model.run_state import VerdictName
from cliffwatch.report.build import build
from cliffwatch.report.course import course_of
from cliffwatch.report.document import EVENT_LIMIT
from cliffwatch.report.html import render
from cliffwatch.report.timestamps import timestamp


def test_a_percentile_of_the_whole_is_that_of_the_merged_histogram_and_not_a_mean(tmp_path: Path) -> None:
    """Nine quiet windows of much, one terrible window of little: the mean of the p99s is far from the p99."""

    def latency(index: int) -> dict[str, Histogram]:
        slow = index == 9
        return {"publish": Histogram.from_values({2_000_000_000: 10} if slow else {1_000_000: 990, 3_000_000: 10})}

    document = document_of(make_journal(tmp_path, JournalPlan(windows=10, baseline_windows=9, latency=latency)))
    merged = Histogram.from_values({1_000_000: 9 * 990, 3_000_000: 90, 2_000_000_000: 10})
    expected = dict(zip(("p50", "p99", "p999"), merged.percentiles_seconds((0.5, 0.99, 0.999)), strict=True))
    load = document["latency"]["publish"]["load"]
    assert {name: load[f"{name}_seconds"] for name in expected} == expected
    assert load["p99_seconds"] == pytest.approx(0.003, rel=0.001)
    assert load["count"] == 9010
    of_phases = {row["phase"]: row["p99_seconds"] for row in document["latency"]["publish"]["phases"]}
    mean_of_phases = sum(of_phases.values()) / 2
    assert of_phases["soak"] == pytest.approx(2.0, rel=0.001)
    assert mean_of_phases > 100 * load["p99_seconds"]


def test_hours_count_from_the_start_of_the_load(tmp_path: Path) -> None:
    def latency(index: int) -> dict[str, Histogram]:
        return {"publish": Histogram.from_values({(3 - index // 60) * 1_000_000: 100})}

    document = document_of(make_journal(tmp_path, JournalPlan(windows=150, window_seconds=60.0, latency=latency)))
    hours = document["latency"]["publish"]["hours"]
    assert [(row["hour"], row["count"]) for row in hours] == [(0, 6000), (1, 6000), (2, 3000)]
    assert [round(row["p50_seconds"], 3) for row in hours] == [0.003, 0.002, 0.001]
    assert "was 3 ms in the first hour and 1 ms in the last" in document["course"]


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [((1, 9, 2), "2 ms in the last, at worst 9 ms in hour 2."), ((1, 5, 5), "5 ms in the last.")],
)
def test_the_course_reports_an_hour_that_was_worse_than_the_ends(
    tmp_path: Path, milliseconds: tuple[int, ...], words: str
) -> None:
    def latency(index: int) -> dict[str, Histogram]:
        return {"publish": Histogram.from_values({milliseconds[index // 60] * 1_000_000: 100})}

    document = document_of(make_journal(tmp_path, JournalPlan(windows=180, window_seconds=60.0, latency=latency)))
    assert document["headline"] == document["findings"][0]["sentence"]
    assert "course" not in document, "the finding says it"
    course = course_of(document["latency"])
    assert course is not None
    assert course.endswith(words)


def test_gaps_have_their_place_and_reason_and_rates_leave_them_out(tmp_path: Path) -> None:
    plan = JournalPlan(windows=400, missing={200, 201, 300}, gaps=(GapEvent(200, 201, "engine_restart"),))
    document = document_of(make_journal(tmp_path, plan))
    coverage = document["coverage"]
    assert (coverage["asked_seconds"], coverage["measured_seconds"], coverage["ratio"]) == (4000, 3970, 0.9925)
    places = [(gap["start_seconds"], gap["end_seconds"], gap["reason"]) for gap in coverage["gaps"]]
    assert places == [(2000.0, 2020.0, "engine_restart"), (3000.0, 3010.0, "unexplained")]
    assert document["throughput"]["load"]["operations_per_second"] == 1000
    assert document["verdict"]["name"] == "pass"


def test_below_99_percent_coverage_there_is_no_pass(tmp_path: Path) -> None:
    document = document_of(
        make_journal(tmp_path, JournalPlan(windows=1000, window_seconds=1.0, missing=set(range(11))))
    )
    assert document["coverage"]["ratio"] == 0.989
    assert document["verdict"]["name"] == "invalid"
    assert "Only 98.90 % of the requested time was measured" in document["headline"]


def drive_facts(**changes: Any) -> dict[str, Any]:
    return {"target": {"kind": "directory"}, "drives": [{"name": "nvme0n1"}]} | changes


def written(device_bytes: int) -> Any:
    return lambda index: {"written_bytes": 1_000_000, "device_written_bytes": device_bytes}


def test_a_run_that_the_page_cache_served_is_invalid_and_says_so(tmp_path: Path) -> None:
    plan = JournalPlan(target="directory:/data", facts=drive_facts(), counters=written(100_000))
    document = document_of(make_journal(tmp_path, plan))
    assert document["verdict"]["name"] == "invalid"
    assert "served by the page cache" in document["headline"]
    assert document["device"]["written"] == {
        "engine_bytes": 30_000_000,
        "device_bytes": 3_000_000,
        "ratio": 0.1,
        "windows": 30,
    }


def test_bytes_flushed_after_the_load_count_as_device_writes(tmp_path: Path) -> None:
    flushed = {"device_written_bytes": 27_000_000, "device_read_bytes": 0}
    plan = JournalPlan(target="directory:/data", facts=drive_facts(), counters=written(100_000), flushed=flushed)
    document = document_of(make_journal(tmp_path, plan))
    assert document["device"]["written"]["device_bytes"] == 30_000_000
    assert document["verdict"]["name"] == "pass"


def test_a_target_without_a_drive_is_invalid(tmp_path: Path) -> None:
    plan = JournalPlan(
        target="directory:/dev/shm", facts=drive_facts(drives=[]), counters=lambda index: {"written_bytes": 1_000_000}
    )
    document = document_of(make_journal(tmp_path, plan))
    assert document["verdict"]["name"] == "invalid"
    assert "No drive is below the target" in document["headline"]
    assert "device" not in document


def test_a_stopped_run_is_asked_only_for_the_time_until_the_stop(tmp_path: Path) -> None:
    plan = JournalPlan(windows=30, missing=set(range(12, 30)), ending=Ending(None))
    directory = make_journal(tmp_path, plan)
    log = EventLog(directory)
    stop = at_window(plan, 11) + 4
    log.append(Event(stop, EventType.STATE, "stopping"))
    log.append(Event(stop + 7, EventType.ENGINE, "load_ended", {"how": "stopped", "message": ""}))
    log.append(Event(stop + 7, EventType.STATE, "reporting"))
    document = document_of(directory)
    assert document["coverage"]["asked_seconds"] == 120
    assert document["coverage"]["ratio"] == 1
    assert document["verdict"]["name"] == "stopped"


def test_the_load_of_a_failed_run_ends_where_it_failed(tmp_path: Path) -> None:
    plan = JournalPlan(windows=30, missing=set(range(12, 30)), ending=Ending(None))
    directory = make_journal(tmp_path, plan)
    failed = at_window(plan, 11) + 14
    log = EventLog(directory)
    log.append(Event(failed, EventType.ENGINE, "load_ended", {"how": "failed", "message": "fio exited with status 1"}))
    log.append(Event(failed, EventType.STATE, "reporting"))
    document = document_of(directory)
    assert document["verdict"]["name"] == "failed"
    assert document["coverage"]["asked_seconds"] == 124
    assert document["phases"][-1]["end_seconds"] == 124


def test_windows_missing_before_a_failure_stay_in_the_requested_time_of_the_run(tmp_path: Path) -> None:
    ending = Ending("failed", "fio exited with status 1")
    document = document_of(make_journal(tmp_path, JournalPlan(missing=set(range(10, 30)), ending=ending)))
    assert document["coverage"]["asked_seconds"] == 300
    assert document["verdict"]["name"] == "failed"
    assert document["headline"] == "The load failed permanently: fio exited with status 1."


def test_a_refused_run_has_a_report_with_what_stood_in_its_way(tmp_path: Path) -> None:
    directory = make_journal(tmp_path, JournalPlan(facts=None, ending=Ending(None)))
    for name in ("events.jsonl", "windows.jsonl", "latency.hlog"):
        (directory / name).unlink()
    log = EventLog(directory)
    log.append(Event(LOAD_START, EventType.STATE, "queued"))
    log.append(Event(LOAD_START + 1, EventType.STATE, "starting"))
    log.append(Event(LOAD_START + 2, EventType.ENGINE, "load_ended", {"how": "failed", "message": "sda1 is mounted"}))
    log.append(Event(LOAD_START + 2, EventType.STATE, "reporting"))
    document = document_of(directory)
    assert document["verdict"] == {"name": "failed", "reasons": ["The load did not start: sda1 is mounted."]}
    assert "coverage" not in document


def test_a_run_that_ended_without_a_load_keeps_the_verdict_it_was_given(tmp_path: Path) -> None:
    directory = make_journal(tmp_path, JournalPlan(facts=None, ending=Ending(None)))
    for name in ("events.jsonl", "windows.jsonl", "latency.hlog"):
        (directory / name).unlink()
    log = EventLog(directory)
    log.append(Event(LOAD_START, EventType.STATE, "queued"))
    log.append(Event(LOAD_START + 1, EventType.STATE, "finished", {"verdict": "stopped", "reasons": ["while queued"]}))
    assert document_of(directory)["verdict"] == {"name": "stopped", "reasons": ["while queued"]}


def test_a_raised_finding_not_confirmed_by_the_whole_run_does_not_degrade_it(tmp_path: Path) -> None:
    raised = Event(LOAD_START + 60, EventType.FINDING, "cliff", {"summary": "p99 rose 40-fold.", "ratio": 40.0})
    document = document_of(make_journal(tmp_path, JournalPlan(events=(raised,))))
    assert document["verdict"]["name"] == "pass"
    assert document["findings"] == []
    assert document["unconfirmed"][0]["at_seconds"] == 60


def alert(at: float, status: str, starts: float, ends: float | None = None) -> Event:
    detail = {
        "status": status,
        "severity": "warning",
        "summary": "The queue is full.",
        "description": f"As {status}.",
        "fingerprint": "f1",
        "starts_at": starts,
        "ends_at": ends,
        "labels": {"alertname": "QueueFull"},
    }
    return Event(at, EventType.ALERT, "QueueFull", detail)


def test_alerts_are_listed_once_each_with_their_times(tmp_path: Path) -> None:
    start = LOAD_START
    events = (
        alert(start + 62, "firing", start + 60),
        alert(start + 92, "resolved", start + 60, start + 90),
        alert(start + 202, "firing", start + 200),
    )
    directory = make_journal(tmp_path, JournalPlan(events=events))
    first, second = document_of(directory)["alerts"]
    assert (first["name"], first["start_seconds"], first["seconds"]) == ("QueueFull", 60, 30)
    assert first["description"] == "As firing."
    assert first["received"] == timestamp(start + 62)
    assert (second["start_seconds"], "end" in second) == (200, False)
    report = build(directory)
    marks = [mark for mark in report.series.marks if mark[1] == "alert"]
    assert [mark[0] for mark in marks] == [60, 200]
    page = render(report.document, report.series)
    assert page.count("<strong>QueueFull</strong>") == 2
    assert "to the end" in page


def test_engine_events_beyond_the_event_limit_are_omitted_from_the_report(tmp_path: Path) -> None:
    directory = make_journal(tmp_path, JournalPlan())
    chatter = "".join(
        Event(LOAD_START + 1, EventType.ENGINE, "segment_deleted", {"number": number}).to_line()
        for number in range(EVENT_LIMIT)
    )
    events = directory / "events.jsonl"
    before = len(events.read_text().splitlines())
    events.write_text(events.read_text() + chatter + Event(LOAD_START + 2, EventType.NOTE, "seen").to_line())
    document = document_of(directory)
    assert document["events_omitted"] == before + 1
    assert len(document["events"]) == EVENT_LIMIT
    assert document["events"][-1]["name"] == "seen"


def run_module(directory: Path) -> tuple[dict[str, Any], bytes, bytes]:
    done = subprocess.run(
        [sys.executable, "-m", "cliffwatch.report", str(directory)], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout), (directory / "report.json").read_bytes(), (directory / "report.html").read_bytes()


def test_the_same_journal_gives_the_same_bytes_before_and_after_the_run_is_finished(tmp_path: Path) -> None:
    directory = make_journal(tmp_path, JournalPlan(windows=12, missing={5}))
    first = run_module(directory)
    verdict = first[0]
    assert set(verdict) == {"verdict", "reasons"}
    assert verdict["verdict"] == VerdictName.INVALID
    EventLog(directory).append(Event(LOAD_START + 500, EventType.STATE, "finished", verdict))
    EventLog(directory).append(Event(LOAD_START + 900, EventType.ALERT, "too_late", {}))
    assert run_module(directory) == first


def test_missing_warm_up_windows_are_a_gap_and_do_not_invalidate_the_run(tmp_path: Path) -> None:
    plan = JournalPlan(windows=40, warm_up_windows=6, baseline_windows=6, missing={0, 1})
    document = document_of(make_journal(tmp_path / "late", plan))
    assert document["verdict"]["name"] == "pass"
    (gap,) = document["coverage"]["gaps"]
    assert (gap["start_seconds"], gap["end_seconds"]) == (0, 20)
    assert (document["coverage"]["ratio"], document["coverage"]["judged_ratio"]) == (0.95, 1)
    for missing in ({6}, {39}):
        missed = document_of(make_journal(tmp_path / str(missing), replace(plan, missing=missing)))
        assert missed["verdict"]["name"] == "invalid"
    unknown = make_journal(tmp_path / "damaged", plan)
    recorded = (unknown / "events.jsonl").read_text().splitlines(keepends=True)
    (unknown / "events.jsonl").write_text("".join(line for line in recorded if '"type":"phase"' not in line))
    assert document_of(unknown)["verdict"]["name"] == "pass"


def test_the_engines_own_share_is_what_the_kernel_charges_to_its_process(tmp_path: Path) -> None:
    def counters(index: int) -> dict[str, int]:
        moved = {"written_bytes": 1000, "device_written_bytes": 9000, "device_read_bytes": 0}
        # The process was gone when the last window was taken.
        return moved | ({"engine_written_bytes": 1500, "engine_cancelled_bytes": 400} if index < 19 else {})

    facts = {"target": {"kind": "directory"}, "drives": [{"name": "sda"}], "file_system": {"type": "xfs"}}
    plan = JournalPlan(windows=20, target="directory:/data", counters=counters, facts=facts)
    document = document_of(make_journal(tmp_path / "own", plan))
    assert document["device"]["written"]["process_bytes"] == 19 * 1100
    assert document["verdict"]["name"] == "pass"
    assert "Most of the drive's traffic was not the engine's" in document["verdict"]["reasons"][1]
    with_daemon = replace(plan, facts=facts | {"file_system": {"type": "fuseblk"}})
    document = document_of(make_journal(tmp_path / "daemon", with_daemon))
    assert "process_bytes" not in document["device"]["written"]
    assert len(document["verdict"]["reasons"]) == 1


def test_a_directory_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cliffwatch.report", str(tmp_path / "none")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "none is not a run's directory" in done.stderr


def test_the_reproduction_reads_back_to_the_same_workload(tmp_path: Path) -> None:
    document = document_of(make_journal(tmp_path, replace(JournalPlan(), target="directory:/data/it's here")))
    assert document["reproduction"]["workload_yaml"] == (tmp_path / "workload.yaml").read_text()
    assert document["reproduction"]["command"].endswith("""--target 'directory:/data/it'"'"'s here'""")


def test_a_drill_is_reproduced_by_a_drill(tmp_path: Path) -> None:
    directory = make_journal(tmp_path, JournalPlan())
    EventLog(directory).append_all(lambda _: [annotated(Annotations(labels={"drill": "trim"}), "ops", LOAD_START)])
    command = document_of(directory)["reproduction"]["command"]
    assert command == "cliffwatch drill --workload workload.yaml --variant trim"
    EventLog(directory).append_all(lambda _: [annotated(Annotations(labels={"drill": "failover"}), "ops", LOAD_START)])
    assert document_of(directory)["reproduction"]["command"].startswith("cliffwatch run start workload.yaml")


def test_the_page_on_reports_explains_every_rule_of_the_verdict_in_its_order() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1].strip().strip("`") for line in page.splitlines() if line.startswith("| `")]
    assert rows == [*(name.value for name, _ in RULES), "pass"]
