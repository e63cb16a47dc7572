"""Windows of several parts become those of one run: nothing is lost, nothing scaled up, and no part waits for ever."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.base.histogram import Histogram
from cliffwatch.coordinator.part_journals import PartJournals, windows_since
from cliffwatch.coordinator.part_windows import PATIENCE_WINDOWS, PartWindows, merged
from cliffwatch.model.window import EngineWindow

DRIVES = {"part-1": ["8:0"], "part-2": ["8:16"]}
NEVER = float("-inf")


def window(start: float, end: float, operations: int = 10, latency: float = 0.002, **gauges: float) -> EngineWindow:
    histogram = Histogram()
    histogram.record_many(np.full(operations, round(latency * 1e9), dtype=np.int64))
    counters = {
        "operations": operations,
        "bytes": 100 * operations,
        "errors": 0,
        "device_write_operations": operations,
        "device_written_bytes": 100 * operations,
        "device_read_operations": 0,
    }
    return EngineWindow(start, end, counters, gauges, {"write": histogram})


def test_quantiles_of_parts_are_each_part_s_own_and_never_merged(tmp_path: Path) -> None:
    def of_quantiles(p99: float) -> EngineWindow:
        return EngineWindow(0.0, 10.0, {"operations": 5}, {}, {}, {"publish": {"p99": p99}})

    found = merged(0, 10, {"part-1": [of_quantiles(0.5)], "part-2": [of_quantiles(0.002)]}, DRIVES)
    assert found.quantiles == {"part-1/publish": {"p99": 0.5}, "part-2/publish": {"p99": 0.002}}
    assert found.latency == {}
    journals = PartJournals(tmp_path, ["part-1"], 0.0)
    journals.append("part-1", of_quantiles(0.5), "soak")
    journals.close()
    (again,) = windows_since(tmp_path, "part-1", 0.0)
    assert again.quantiles == {"publish": {"p99": 0.5}}


def queues(until: float = NEVER) -> PartWindows:
    return PartWindows(DRIVES, 10.0, until)


def test_counts_of_each_part_stand_beside_the_sum() -> None:
    one, two = window(0, 10, 30), window(0, 10, 10)
    one.counters.update(errors=2, skipped=3)
    found = merged(0, 10, {"part-1": [one], "part-2": [two]}, DRIVES).counters
    assert (found["errors"], found["part-1/errors"], found["part-2/errors"]) == (2, 2, 0)
    assert (found["skipped"], found["part-1/skipped"]) == (3, 3)
    assert "part-2/skipped" not in found


def test_counters_add_histograms_merge_and_each_part_is_there_beside_it() -> None:
    one, two = window(0, 10, 30, 0.001), window(0, 10, 10, 0.5)
    found = merged(0, 10, {"part-1": [one], "part-2": [two]}, DRIVES)
    assert (found.start, found.end) == (0, 10)
    assert found.counters["operations"] == 40
    assert (found.counters["part-1/operations"], found.counters["part-2/operations"]) == (30, 10)
    assert found.counters["device_written_bytes"] == 4000
    assert (found.counters["part-1/8:0.write_operations"], found.counters["part-2/8:16.write_operations"]) == (30, 10)
    assert "part-1/8:0.read_operations" not in found.counters
    assert {name: histogram.count for name, histogram in found.latency.items()} == {
        "write": 40,
        "part-1/write": 30,
        "part-2/write": 10,
    }
    # The slow one is not averaged away.
    assert found.latency["write"].percentiles_seconds([0.8]) == pytest.approx([0.5], rel=0.01)
    assert found.latency["part-1/write"].percentiles_seconds([0.99]) == pytest.approx([0.001], rel=0.01)
    assert "measured_seconds" not in found.gauges


@pytest.mark.parametrize("below", [["259:0"], ["259:0", "259:1"]], ids=["one drive", "two drives"])
def test_drives_with_equal_numbers_below_two_parts_stay_apart(below: list[str]) -> None:
    """Each kernel numbers its drives by itself, so that those of two hosts may have the same numbers."""

    def of_drives(operations: int, depth: float) -> EngineWindow:
        own = window(0, 10, operations, device_queue_depth=depth)
        if len(below) > 1:
            for number in below:
                own.counters[f"{number}.write_operations"] = operations
                own.gauges[f"{number}.queue_depth"] = depth
        return own

    parts = {"left": [of_drives(30, 2.0)], "right": [of_drives(10, 3.0)]}
    found = merged(0, 10, parts, dict.fromkeys(parts, below))
    writes = {name: count for name, count in found.counters.items() if name.endswith(".write_operations")}
    depths = {name: value for name, value in found.gauges.items() if name.endswith(".queue_depth")}
    assert writes == {f"{part}/{n}.write_operations": own for part, own in (("left", 30), ("right", 10)) for n in below}
    assert depths == {f"{part}/{n}.queue_depth": own for part, own in (("left", 2.0), ("right", 3.0)) for n in below}


def test_a_part_that_is_missing_is_a_gap_of_its_share() -> None:
    found = merged(0, 10, {"part-1": [window(0, 10, measured_seconds=8.0)]}, DRIVES)
    assert found.gauges["measured_seconds"] == 4.0
    assert found.counters["operations"] == 10


def test_gauges_are_the_largest_the_sum_or_the_part_s_own() -> None:
    one = window(
        0, 10, oldest_outstanding_seconds=1.0, device_queue_depth=2.0, target_rate=5.0, host_cpu_busy_ratio=0.5
    )
    two = window(0, 10, oldest_outstanding_seconds=7.0, device_queue_depth=3.0, target_rate=5.0, segments=4.0)
    gauges = merged(0, 10, {"part-1": [one], "part-2": [two]}, DRIVES).gauges
    assert gauges == {
        "oldest_outstanding_seconds": 7.0,
        "part-1/oldest_outstanding_seconds": 1.0,
        "part-2/oldest_outstanding_seconds": 7.0,
        "device_queue_depth": 5.0,
        "part-1/8:0.queue_depth": 2.0,
        "part-2/8:16.queue_depth": 3.0,
        "target_rate": 10.0,
        "host_cpu_busy_ratio": 0.5,
        "part-2/segments": 4.0,
    }


def test_a_window_waits_for_all_parts_and_no_longer_than_its_patience() -> None:
    waiting = queues()
    assert waiting.take("part-1", window(0, 10))
    assert waiting.due(11.0) == []
    assert waiting.take("part-2", window(0, 10))
    (whole,) = waiting.due(11.0)
    assert whole.counters["operations"] == 20
    waiting.take("part-1", window(10, 20))
    assert waiting.due(20 + 10 * PATIENCE_WINDOWS - 0.1) == []
    (half,) = waiting.due(20 + 10 * PATIENCE_WINDOWS)
    assert (half.start, half.end, half.gauges["measured_seconds"]) == (10, 20, 5.0)
    assert not waiting.take("part-2", window(10, 20)), "the run's window is written"
    assert waiting.take("part-2", window(20, 30))


def test_a_part_that_has_ended_is_not_waited_for() -> None:
    waiting = queues()
    waiting.end("part-2")
    waiting.take("part-1", window(0, 10))
    assert len(waiting.due(NEVER)) == 1


def test_a_window_that_is_longer_is_never_cut() -> None:
    waiting = queues()
    for step in range(3):
        waiting.take("part-1", window(10 * step, 10 * step + 10))
    assert [each.end for each in waiting.due(30.0)] == []
    waiting.take("part-2", window(0, 10))
    waiting.take("part-2", window(10, 30, 5))
    found = waiting.due(30.0)
    assert [(each.start, each.end, each.counters["operations"]) for each in found] == [(0, 10, 20), (10, 30, 25)]


def test_a_window_before_the_merged_time_is_not_taken_again() -> None:
    waiting = queues(until=20.0)
    assert not waiting.take("part-1", window(10, 20))
    assert waiting.take("part-1", window(20, 30))


@given(
    st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=8), min_size=2, max_size=2),
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 120)), max_size=40),
)
def test_merging_in_any_order_of_arrival_loses_and_duplicates_no_operation(
    lengths: list[list[int]], order: list[tuple[int, int]]
) -> None:
    """`lengths` of each part's windows, in steps; `order` says whose next one comes when."""
    left = []
    for steps in lengths:
        edges = np.cumsum([0, *steps]) * 10
        left.append([window(float(a), float(b)) for a, b in pairwise(edges)])
    waiting, taken, found, now = queues(), 0, [], 0.0
    for place, seconds in [*order, *[(0, 0)] * 8, *[(1, 0)] * 8]:
        now += seconds
        if left[place]:
            taken += 10 * waiting.take(f"part-{place + 1}", left[place].pop(0))
        found += waiting.due(now)
    for part in DRIVES:
        waiting.end(part)
    found += waiting.due(now)
    assert sum(each.counters["operations"] for each in found) == taken
    for before, after in pairwise(found):
        assert after.start >= before.end - 1e-6
    for each in found:
        assert each.end > each.start
        assert sum(each.latency[f"part-{n}/write"].count for n in (1, 2) if f"part-{n}/write" in each.latency) == (
            each.latency["write"].count
        )
