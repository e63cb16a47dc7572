"""The standing verdict of an indexed run: by its row, its findings and its journal."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from testkit.databases import indexed
from testkit.journals import rewritten
from testkit.recorded_runs import LOAD_START, Ending, JournalPlan, make_journal

from cliffwatch.app.standing import standing_of
from cliffwatch.journal import Event, EventType, files
from cliffwatch.model.run_state import RunState
from cliffwatch.store.models import RunRow

MINUTE = 60.0
#: An hour of warm-up and baseline, then nine hours of soak of which two and a half are over.
PLAN = JournalPlan(
    windows=600,
    window_seconds=MINUTE,
    warm_up_windows=30,
    baseline_windows=30,
    missing=range(210, 600),
    ending=Ending(None),
    counters=lambda _: {"operations": 100, "bytes": 1 << 20, "errors": 0, "device_written_bytes": 60 << 20},
    facts={"target": {"kind": "directory"}, "drives": [{"name": "nvme0n1", "size_bytes": (60 << 20) * 400}]},
)


def said_of(tmp_path: Path, plan: JournalPlan) -> str:
    return standing_in(make_journal(tmp_path / plan.run_id, plan))


def standing_in(directory: Path, spoil: Callable[[Path], object] = lambda _: None) -> str:
    """Standing verdict of a journal that is spoiled after it was indexed."""
    database = indexed(directory)
    spoil(directory)
    with database.session() as session:
        row = session.get(RunRow, directory.name)
        assert row is not None
        return standing_of(database, row)


def found(series: str, **detail: Any) -> Event:
    onset = LOAD_START + 120 * MINUTE
    named: Mapping[str, Any] = {"kind": "cliff", "series": series, "onset": onset, "summary": f"The {series} rose 9×."}
    return Event(onset + MINUTE, EventType.FINDING, "cliff", {**named, **detail})


def test_a_run_in_its_soak_says_what_is_open_and_when_its_drive_will_be_written_over(tmp_path: Path) -> None:
    said = said_of(tmp_path, replace(PLAN, limits=("p99 <= 1s",)))
    assert said == (
        "No cliff in the first 2h of soak. Open: what came in the last 30m, what is small or slow, its limits, a cliff "
        "once the drive was written over, about 2026-09-21 21:40Z. The verdict is due about 2026-09-22 01:00Z."
    )


def test_time_that_was_not_measured_is_said(tmp_path: Path) -> None:
    plan = replace(PLAN, missing=[*range(100, 121), *range(210, 600)])
    assert "whether the run is valid, since 10 % of it was not measured" in said_of(tmp_path, plan)


def test_a_finding_about_the_clients_is_said_and_one_of_a_drive_alone_is_not(tmp_path: Path) -> None:
    of_drive, of_client = found("device_write_latency"), found("append.p99", operation="append")
    assert said_of(tmp_path / "drive", replace(PLAN, events=(of_drive,))).startswith("No cliff in the first 2h")
    both = said_of(tmp_path / "both", replace(PLAN, events=(of_drive, of_client)))
    assert both.startswith("Found so far: The append.p99 rose 9×. The report says")
    unwatched = replace(PLAN, latency=lambda _: {}, events=(of_drive,))
    assert said_of(tmp_path / "no-client", unwatched).startswith("Found so far: The device_write_latency rose 9×.")


@pytest.mark.parametrize(
    "facts", [None, {"drives": []}, {"drives": [{"name": "sda"}]}, {"drives": [{"size_bytes": "a"}]}, {"drives": None}]
)
def test_a_drive_of_unknown_size_is_not_mentioned(tmp_path: Path, facts: dict[str, Any] | None) -> None:
    assert "written over" not in said_of(tmp_path, replace(PLAN, facts=facts))


@pytest.mark.parametrize("plan", [replace(PLAN, missing=range(600)), replace(PLAN, missing=(), ending=Ending())])
def test_nothing_is_said_without_a_window_and_of_a_load_that_is_over(tmp_path: Path, plan: JournalPlan) -> None:
    assert said_of(tmp_path, plan) == ""


def test_nothing_is_said_of_a_journal_that_cannot_be_read(tmp_path: Path) -> None:
    directory = make_journal(tmp_path / PLAN.run_id, PLAN)
    assert standing_in(directory, lambda run: (run / files.ORDER).write_text("{}")) == ""


def test_a_damaged_window_is_passed_over(tmp_path: Path) -> None:
    directory = make_journal(tmp_path / PLAN.run_id, PLAN)
    before = standing_in(directory)
    lines = (directory / files.WINDOWS).read_bytes().splitlines(keepends=True)
    (directory / files.WINDOWS).write_bytes(b"".join([b"{}\n", *lines[1:]]))
    assert standing_in(directory) == before


def test_windows_longer_than_the_workload_s_are_measured_time(tmp_path: Path) -> None:
    """As those of an engine that reports less often while its target hangs."""
    directory = make_journal(tmp_path / PLAN.run_id, PLAN)
    lines = (directory / files.WINDOWS).read_bytes().splitlines(keepends=True)
    last = json.loads(lines[-1])
    longer = [
        rewritten(line, seq=seq, end=json.loads(line)["end"] + MINUTE)
        for seq, line in enumerate(lines[: len(lines) - 1 : 2])
    ]
    (directory / files.WINDOWS).write_bytes(b"".join(longer))
    assert json.loads(longer[-1])["end"] == last["end"]
    assert "was not measured" not in standing_in(directory)


def test_time_that_a_window_lacks_was_not_measured(tmp_path: Path) -> None:
    said = said_of(tmp_path, replace(PLAN, gauges=lambda _: {"measured_seconds": 0.75 * MINUTE}))
    assert "since 25 % of it was not measured" in said


def test_a_recovery_is_no_finding(tmp_path: Path) -> None:
    recovery = found("append.p99", operation="append", kind="recovery")
    said = said_of(tmp_path, replace(PLAN, events=(replace(recovery, name="recovery"),)))
    assert said.startswith("No cliff in the first 2h")


def test_an_interrupted_run_has_a_standing_verdict(tmp_path: Path) -> None:
    stopped = Event(LOAD_START + 210 * MINUTE, EventType.STATE, RunState.INTERRUPTED.value, {})
    assert said_of(tmp_path, replace(PLAN, events=(stopped,))).startswith("No cliff in the first 2h")
