"""What the report says of a warm-up that waits for the drive's steady state."""

from collections.abc import Callable
from pathlib import Path

import pytest
from testkit.recorded_runs import JournalPlan, make_journal
from testkit.worker_runs import execute_run, names, queue_run, report
from tests.report.documents import document_of
from tests.report.pages import page_of


def slowing(until: int) -> Callable[[int], dict[str, int]]:
    """Operations that fall from window to window until they settle."""
    return lambda index: {"operations": 10_000 - 150 * min(index, until)}


def test_a_drive_that_becomes_steady_is_reported_with_its_rounds(tmp_path: Path) -> None:
    plan = JournalPlan(windows=120, warm_up_windows=60, steady_windows=60, counters=slowing(12))
    directory = make_journal(tmp_path, plan)
    document = document_of(directory)
    steady = document["steady"]
    assert steady["reached"]
    assert steady["at_seconds"] == 360.0
    assert [row["end_seconds"] for row in steady["rounds"]] == [60.0, 120.0, 180.0, 240.0, 300.0, 360.0]
    assert document["verdict"]["name"] == "pass"
    assert "Reached at 0:06:00" in page_of(directory)


def test_a_drive_that_does_not_become_steady_makes_the_run_invalid(tmp_path: Path) -> None:
    plan = JournalPlan(windows=120, warm_up_windows=60, steady_windows=60, counters=slowing(60))
    document = document_of(make_journal(tmp_path, plan))
    assert document["verdict"]["name"] == "invalid"
    assert document["headline"].startswith("The drive did not reach its steady state within 10m: operations per second")


def test_without_being_asked_nothing_is_said_of_it(tmp_path: Path) -> None:
    assert "steady" not in document_of(make_journal(tmp_path, JournalPlan(counters=slowing(30))))


def test_the_warm_up_ends_as_soon_as_the_drive_is_steady(tmp_path: Path) -> None:
    """In virtual time, by a real worker: the soak gets what the warm-up did not need."""
    phases = {"warm_up": "2m", "steady": {"maximum": "1h", "round": "1m"}, "baseline": "5m", "soak": "30m"}
    load = {"time": "virtual", "operations_per_second": 1000}
    journal = queue_run(tmp_path / "steady", load, window="10s", phases=phases)
    execute_run(journal)
    document = report(journal)
    bounds = {row["name"]: (row["start_seconds"], row["end_seconds"]) for row in document["phases"]}
    assert bounds["warm_up"] == pytest.approx((0, 420))
    assert bounds["baseline"] == pytest.approx((420, 720))
    assert bounds["soak"] == pytest.approx((720, 97 * 60))
    assert document["steady"]["at_seconds"] == 420
    assert "steady_state_reached" in names(journal, "note")
    measured = {row["name"]: row["windows"] for row in document["phases"]}
    assert (measured["warm_up"], measured["baseline"]) == (42, 30)
