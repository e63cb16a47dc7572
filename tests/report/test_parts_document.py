"""Parts of a run in its report: how far each is from the others, the furthest first."""

import re
from typing import Any

import pytest
from testkit.journals import order_of

from cliffwatch.journal import JournalWindow
from cliffwatch.model.shown_drives import drives_of_parts
from cliffwatch.report.charts.curve import CURVE_POINTS
from cliffwatch.report.charts.part_spread import drawn, spread_words
from cliffwatch.report.parts_document import parts_document
from cliffwatch.report.schema.latency import LatencyOfOperation

ORDER = order_of(
    "directory:/mnt/a", "directory:/mnt/b", "directory:/mnt/c", part_names=("nvme0n1", "nvme1n1", "nvme2n1")
)


def latency(load: float | None, **phases: float) -> LatencyOfOperation:
    rows: Any = [{"phase": phase, "count": 9, "p99_seconds": value} for phase, value in phases.items()]
    return {"load": {"count": 9} if load is None else {"count": 9, "p99_seconds": load}, "phases": rows, "hours": []}


def test_parts_are_compared_by_their_rise_where_all_have_one() -> None:
    found = parts_document(
        ORDER,
        [],
        {
            "append": latency(0.02, baseline=0.005, soak=0.02),
            "nvme0n1/append": latency(0.02, baseline=0.010, soak=0.020),
            "nvme1n1/append": latency(0.02, baseline=0.002, soak=0.012),
            "nvme2n1/append": latency(0.02, baseline=0.004, soak=0.008),
        },
    )
    assert [(part["name"], part["ratio_to_others"]) for part in found] == [
        ("nvme1n1", 3.0),
        ("nvme0n1", 0.5),
        ("nvme2n1", 0.5),
    ]
    assert (found[0]["rise_ratio"], found[0]["baseline_p99_seconds"], found[0]["p99_seconds"]) == (6.0, 0.002, 0.012)
    assert found[0]["target"] == "directory:/mnt/b"


def test_without_a_baseline_they_are_compared_by_p99_and_one_that_measured_nothing_is_last() -> None:
    found = parts_document(
        ORDER, [], {"append": latency(0.02), "nvme0n1/append": latency(0.004), "nvme2n1/append": latency(0.012)}
    )
    assert [part["name"] for part in found] == ["nvme2n1", "nvme0n1", "nvme1n1"]
    assert found[0]["ratio_to_others"] == 3.0
    assert "p99_seconds" not in found[2]
    assert parts_document(ORDER, [], {}) == [
        {"name": name, "target": f"directory:/mnt/{path}", "operations": 0}
        for name, path in (("nvme0n1", "a"), ("nvme1n1", "b"), ("nvme2n1", "c"))
    ]


def test_a_part_that_was_named_by_people_says_its_drive() -> None:
    named = order_of("directory:/mnt/a", "directory:/mnt/b", part_names=("spare", "nvme1n1"))
    facts = {"drives": [{"name": "nvme0n1", "part": "spare"}, {"name": "nvme1n1", "part": "nvme1n1"}]}
    found = parts_document(named, [], {}, drives_of_parts(facts))
    assert [(part["name"], part.get("drives")) for part in found] == [("spare", "nvme0n1"), ("nvme1n1", None)]


def window(index: int, **p99: float) -> JournalWindow:
    latency: dict[str, dict[str, float | None]] = {f"{part}/append": {"p99": value} for part, value in p99.items()}
    counters = {f"{part}/operations": 0 if part not in p99 else 50 for part in ("nvme0n1", "nvme1n1", "nvme2n1")}
    gauges = {"nvme1n1/oldest_outstanding_seconds": 12.0} if "nvme1n1" not in p99 else {}
    start = 10.0 * index
    return JournalWindow(index, start, start + 10, "soak", {"operations": 100} | counters, gauges, latency, (0, 0))


def test_each_part_has_the_curve_of_its_worst_windows_and_of_its_stalls() -> None:
    windows = [window(index, nvme0n1=0.004, nvme1n1=0.05 if index == 70 else 0.004) for index in range(120)]
    windows[30] = window(30, nvme0n1=0.004)
    found = {part["name"]: part for part in parts_document(ORDER, windows, {"append": latency(0.02)})}
    points = found["nvme1n1"]["curve"]
    assert len(points) <= 2 * CURVE_POINTS + 2
    assert max(points, key=lambda point: point.get("p99_seconds", 0.0)) == {"at": 710.0, "p99_seconds": 0.05}
    assert {"at": 310.0, "stall_seconds": 12.0} in points
    assert {point.get("p99_seconds") for point in found["nvme0n1"]["curve"]} == {0.004}


def test_a_stalled_window_of_a_part_is_a_stall_in_its_curve_also_beside_a_latency() -> None:
    """As in the run's curve: requests may have latencies although no operation was completed."""
    stalled = window(1, nvme0n1=0.004, nvme1n1=0.07)
    stalled.counters["nvme1n1/operations"] = 0
    windows = [window(0, nvme0n1=0.004, nvme1n1=0.004), stalled]
    found = {part["name"]: part for part in parts_document(ORDER, windows, {"append": latency(0.02)})}
    assert found["nvme1n1"]["curve"] == [{"at": 10.0, "p99_seconds": 0.004}, {"at": 20.0, "stall_seconds": 0.0}]


def test_the_16_parts_furthest_from_the_others_have_a_curve() -> None:
    names = tuple(f"nvme{number}n1" for number in range(20))
    order = order_of(*(f"directory:/mnt/{name}" for name in names), part_names=names)
    levels = {f"{name}/append": latency(0.004 + 0.001 * number) for number, name in enumerate(names)}
    found = parts_document(order, [window(0, **dict.fromkeys(names, 0.004))], {"append": latency(0.02)} | levels)
    assert [part["name"] for part in found if "curve" in part] == list(reversed(names))[:16]
    words = "half are at most 13 ms, nine in ten at most 21 ms, the slowest 23 ms"
    assert spread_words(found) == words
    lines = re.findall(r"M([0-9.]+) 6v", str(drawn(found)))
    # From 4 to 23 ms, on an axis from 1 to 100 ms.
    assert (float(lines[0]), float(lines[-1])) == pytest.approx((301, 681), abs=1)


def test_a_run_with_one_target_has_no_parts() -> None:
    assert parts_document(order_of("directory:/mnt/a"), [], {}) == []
    assert parts_document(None, [], {}) == []
