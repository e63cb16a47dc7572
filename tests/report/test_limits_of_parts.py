"""Limits on one part of a run, or on any of its parts, in its report and while it goes on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testkit.recorded_runs import LOAD_START, JournalPlan, make_journal
from tests.report.documents import document_of
from tests.report.several_targets import PARTS, ordered_on_two

from cliffwatch.base.histogram import Histogram
from cliffwatch.model.limits import ANY_PART, parse_limit
from cliffwatch.report.limits.now import LimitWatch, Outside

MILLISECOND = 1_000_000
NOTHING = Outside({}, ())


def slow_on_the_right(first: int) -> Callable[[int], dict[str, Histogram]]:
    """Of 1,000 latencies a part, all are of 2 ms, and from a window on those on the right of 50 ms."""

    def latency(index: int) -> dict[str, Histogram]:
        own = {"left": Histogram.from_values({2 * MILLISECOND: 1000})}
        own["right"] = Histogram.from_values({(50 if index >= first else 2) * MILLISECOND: 1000})
        both = Histogram.sum_of(own["left"], own["right"])
        return {"publish": both} | {f"{part}/publish": each for part, each in own.items()}

    return latency


def counters(index: int) -> dict[str, int]:
    return {
        "operations": 2000,
        "bytes": 4_000_000,
        "errors": 2,
        "left/operations": 1500,
        "left/bytes": 3_000_000,
        "left/errors": 0,
        "right/operations": 500,
        "right/bytes": 1_000_000,
        "right/errors": 2,
    }


def journal(directory: Path, *limits: str, first: int = 30, **plan: Any) -> Path:
    """Run of 60 windows of 10 s on two targets."""
    asked = JournalPlan(
        windows=60, limits=limits, latency=slow_on_the_right(first), counters=plan.pop("counters", counters), **plan
    )
    return ordered_on_two(make_journal(directory, asked))


@pytest.mark.parametrize(
    ("text", "part", "operation", "over_seconds"),
    [
        ("p99 of part nvme3n1 <= 20ms", "nvme3n1", None, None),
        ("p99 of sync of part a-1 <= 20ms over any 10m", "a-1", "sync", 600.0),
        ("max of any part <= 1s", ANY_PART, None, None),
        ("throughput of any part >= 100MB/s", ANY_PART, None, None),
        ("operations of part any >= 5/s", "any", None, None),
        ("errors of any part <= 0.1% over any 1h", ANY_PART, None, 3600.0),
        ("p99 of part_time <= 20ms", "", "part_time", None),
    ],
)
def test_a_limit_may_name_a_part(text: str, part: str, operation: str | None, over_seconds: float | None) -> None:
    limit = parse_limit(text)
    assert (limit.text, limit.part, limit.operation, limit.over_seconds) == (text, part, operation, over_seconds)


@pytest.mark.parametrize(
    ("limit", "worst"),
    [
        ("p99 of part left <= 20ms", None),
        ("p99 of part right <= 20ms", "50 ms"),
        ("p99 of any part <= 20ms", "right: 50 ms"),
        ("p99 of publish of any part <= 20ms over any 1m", "right: 50 ms"),
        ("mean of part left <= 5ms", None),
        ("mean of part right <= 5ms", "26 ms"),
        ("throughput of part left >= 200KB/s", None),
        ("throughput of any part >= 200KB/s", "right: 97.7 KiB/s"),
        ("operations of any part >= 40/s", None),
        ("errors of part left <= 0.1%", None),
        ("errors of any part <= 0.1%", "right: 0.4 %"),
    ],
)
def test_a_limit_is_held_against_the_part_that_it_names(tmp_path: Path, limit: str, worst: str | None) -> None:
    (row,) = document_of(journal(tmp_path / "run", limit))["limits"]
    assert [span["worst"] for span in row["broken"]] == ([] if worst is None else [worst])
    assert row["held"] == (worst is None)


def test_a_limit_on_any_part_that_held_has_the_margin_of_each(tmp_path: Path) -> None:
    (row,) = document_of(journal(tmp_path / "run", "operations of any part >= 40/s"))["limits"]
    assert row["margin"] == "left: 3.8× the bound; right: 25 % above the bound"


def test_a_part_that_the_run_has_not_is_named(tmp_path: Path) -> None:
    (row,) = document_of(journal(tmp_path / "run", "p99 of part middle <= 20ms"))["limits"]
    assert row["unjudged"] == "the run has no part 'middle'; it has left, right"


def test_a_stall_of_one_part_breaks_its_limit_and_not_the_other_s(tmp_path: Path) -> None:
    def stalled(index: int) -> dict[str, int]:
        return counters(index) | ({"right/operations": 0} if index in range(40, 46) else {})

    def waiting(index: int) -> dict[str, float]:
        age = 10.0 * (index - 39) if index in range(40, 46) else 0.0
        return {"oldest_outstanding_seconds": age, "left/oldest_outstanding_seconds": 0.0} | {
            "right/oldest_outstanding_seconds": age
        }

    limits = ("max of part left <= 5s", "max of part right <= 5s")
    left, right = document_of(journal(tmp_path / "run", *limits, first=60, counters=stalled, gauges=waiting))["limits"]
    assert left["held"]
    assert [span["worst"] for span in right["broken"]] == ["60 s"]


def test_while_a_run_goes_on_the_worst_part_is_shown(tmp_path: Path) -> None:
    limits = ["p99 of any part <= 20ms", "p99 of part left <= 20ms", "operations of any part >= 60/s"]
    watch = LimitWatch(journal(tmp_path / "run", *limits), limits, LOAD_START, PARTS)
    assert watch.read_on()
    worst, left, rate = watch.now(NOTHING)
    assert (worst.value, worst.broken) == ("right: 50 ms", True)
    assert (left.value, left.broken) == ("2 ms", False)
    assert (rate.value, rate.broken) == ("right: 50 /s", True)


def test_in_a_run_with_one_target_any_part_is_the_run(tmp_path: Path) -> None:
    limit = "p99 of any part <= 20ms"
    latency = lambda index: {"publish": Histogram.from_values({50 * MILLISECOND: 100})}  # noqa: E731
    directory = make_journal(tmp_path / "run", JournalPlan(windows=60, limits=(limit,), latency=latency))
    (row,) = document_of(directory)["limits"]
    assert [span["worst"] for span in row["broken"]] == ["50 ms"]
    watch = LimitWatch(directory, [limit], LOAD_START, ["local"])
    assert watch.read_on()
    assert watch.now(NOTHING)[0].value == "50 ms"
