"""Limits on p95, the mean, operations per second, errors, isolated rises, recovery, and the longest through a stall."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from testkit.recorded_runs import LOAD_START, JournalPlan, make_journal
from tests.report.documents import document_of

from cliffwatch.base.histogram import Histogram
from cliffwatch.journal import Event, EventType

MILLISECOND = 1_000_000
Latency = Callable[[int], dict[str, Histogram]]


def steady(slow: range = range(0), share: int = 0) -> Latency:
    """Of 1,000 latencies of 2 ms in each window, `share` take 50 ms in some windows."""

    def latency(index: int) -> dict[str, Histogram]:
        count = share if index in slow else 0
        return {"publish": Histogram.from_values({2 * MILLISECOND: 1000 - count, 50 * MILLISECOND: count})}

    return latency


def judged(directory: Path, plan: JournalPlan, *limits: str, windows: int = 60) -> list[dict[str, Any]]:
    """Limits of a run whose first six windows of 10 s are warm-up."""
    plan = replace(plan, windows=windows, warm_up_windows=6, limits=limits)
    found: list[dict[str, Any]] = document_of(make_journal(directory, plan))["limits"]
    return found


def test_a_p95_is_read_off_the_merged_span(tmp_path: Path) -> None:
    """Six of a hundred of two windows are slow: two of a hundred of a minute."""
    plan = JournalPlan(latency=steady(range(30, 32), 60))
    rows = judged(tmp_path, plan, "p95 <= 20ms over any 10s", "p95 <= 20ms over any 1m", "p95 <= 20ms")
    assert [row["held"] for row in rows] == [False, True, True]
    assert rows[0]["broken"][0]["worst"] == "50 ms"


def test_a_mean_is_of_all_operations_of_the_span(tmp_path: Path) -> None:
    """Half of two windows take 50 ms: 26 ms on average there, 10 ms over a minute."""
    plan = JournalPlan(latency=steady(range(30, 32), 500))
    rows = judged(tmp_path, plan, "mean <= 20ms over any 10s", "mean <= 20ms over any 1m", "mean <= 9ms over any 1m")
    assert [row["held"] for row in rows] == [False, True, False]
    assert rows[0]["broken"][0]["worst"] == "26 ms"
    assert rows[2]["broken"][0]["worst"] == "10 ms"


def test_operations_a_second_below_their_limit_break_it(tmp_path: Path) -> None:
    plan = JournalPlan(
        latency=steady(), counters=lambda index: {"operations": 2_000 if index in range(40, 52) else 10_000}
    )
    fast, slow = judged(tmp_path, plan, "operations >= 500/s over any 1m", "operations >= 150/s over any 1m")
    assert not fast["held"]
    assert fast["broken"][0]["worst"] == "200 /s"
    assert (slow["held"], slow["margin"]) == (True, "33.3 % above the bound")


@pytest.mark.parametrize("name", ["errors", "skipped"])
def test_an_error_budget_counts_what_failed_and_what_was_skipped(tmp_path: Path, name: str) -> None:
    """20 of 10,000 in each of six windows."""
    plan = JournalPlan(
        latency=steady(),
        counters=lambda index: {"operations": 9_980, "errors": 0, name: 20 if index in range(30, 36) else 0},
    )
    rows = judged(tmp_path, plan, "errors <= 0.1% over any 1m", "errors <= 0.3% over any 1m", "errors <= 0.1%")
    assert [row["held"] for row in rows] == [False, True, True]
    assert rows[0]["broken"][0]["worst"] == "0.2 %"


def test_more_isolated_rises_than_allowed_break_their_limit(tmp_path: Path) -> None:
    slow = (200, 500, 640)

    def latency(index: int) -> dict[str, Histogram]:
        return {"publish": Histogram.from_values({(400 if index in slow else 2) * MILLISECOND: 1000})}

    plan = JournalPlan(latency=latency)
    rows = judged(tmp_path, plan, "isolated <= 3", "isolated <= 2", "isolated <= 1 over any 1h", windows=800)
    assert [row["held"] for row in rows] == [True, False, False]
    assert rows[1]["broken"][0]["worst"] == "3 isolated rises"


def test_recovery_is_the_time_from_a_marks_end_until_the_latency_is_as_before(tmp_path: Path) -> None:
    """Marked for a minute, slow for two minutes more."""
    mark = {"start": LOAD_START + 300, "end": LOAD_START + 360, "message": "pulled a drive", "by": "ann"}
    plan = JournalPlan(
        latency=steady(range(30, 48), 1000), events=(Event(LOAD_START + 400, EventType.NOTE, "marked", mark),)
    )
    early, late = judged(tmp_path, plan, "recovery <= 1m after marks", "recovery <= 3m after marks", windows=120)
    assert not early["held"]
    assert early["broken"][0]["worst"] == "2m after 'pulled a drive'"
    assert late["held"]


def test_recovery_that_never_comes_is_not_held_and_without_a_mark_it_is_not_judged(tmp_path: Path) -> None:
    mark = {"start": LOAD_START + 300, "end": LOAD_START + 360, "message": "pulled a drive", "by": "ann"}
    plan = JournalPlan(
        latency=steady(range(30, 120), 1000), events=(Event(LOAD_START + 400, EventType.NOTE, "marked", mark),)
    )
    (row,) = judged(tmp_path / "never", plan, "recovery <= 3m after marks", windows=120)
    assert row["broken"][0]["worst"] == "not recovered after 'pulled a drive'"
    (row,) = judged(tmp_path / "unmarked", JournalPlan(latency=steady()), "recovery <= 3m after marks")
    assert row["unjudged"] == "no span of the run is marked"


def test_a_maximum_does_not_hold_through_a_stall_whose_age_is_not_known(tmp_path: Path) -> None:
    still = range(60, 63)
    plan = JournalPlan(
        latency=lambda index: {} if index in still else steady()(index),
        counters=lambda index: {"operations": 0} if index in still else {},
    )
    short, long = judged(tmp_path, plan, "max <= 1s", "max <= 40s", windows=120)
    assert [span["worst"] for span in short["broken"]] == ["at least 30 s"]
    assert long["held"]
