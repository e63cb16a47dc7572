"""The traffic of windows from scrapes: nothing twice, nothing left out, nothing filled in."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.coordinator.drive_counts import LONGEST_SECONDS, DriveCounts
from cliffwatch.machine.diskstats import DeviceCounters
from cliffwatch.model.window import DRIVES_AGE, DRIVES_SPAN
from cliffwatch.part.interval import Interval

START, WINDOW, LAG = 1_000_000.0, 10.0, 3.0


def counted(moment: float, rate: int = 100) -> DeviceCounters:
    """What a drive has counted at a moment that writes so many times a second, each for 2 ms."""
    writes = round((moment - START + 1000) * rate)
    return DeviceCounters(
        write_operations=writes,
        write_bytes=writes * 4096,
        write_milliseconds=writes * 2,
        weighted_milliseconds=writes * 4,
    )


def windows(counts: DriveCounts, number: int, first: int = 0) -> Iterator[Interval]:
    for each in range(first, first + number):
        yield counts.between(START + each * WINDOW, START + (each + 1) * WINDOW)


def test_a_window_has_what_was_counted_between_the_scrapes_before_its_edges() -> None:
    counts = DriveCounts({"a/sda": "0:1"}, LAG)
    # Once in five seconds, two after each line of the grid.
    counts.add({"a/sda": {moment: counted(moment) for moment in (START + 5 * step + 2 for step in range(-3, 9))}})
    found = list(windows(counts, 4))
    for interval in found:
        assert interval.counters["device_write_operations"] == 1000
        assert interval.counters["device_written_bytes"] == 4_096_000
        assert interval.counters["device_write_milliseconds"] == 2000
        assert interval.gauges == {"device_queue_depth": pytest.approx(0.4), DRIVES_AGE: 3.0, DRIVES_SPAN: 10.0}
    assert list(windows(counts, 1, first=4)) != [Interval()]
    assert list(windows(counts, 2, first=5)) == [Interval()] * 2, "nothing is filled in"


@given(
    period=st.floats(0.5, 60),
    phase=st.floats(0, 1),
    lost=st.sets(st.integers(0, 60), max_size=10),
    late=st.lists(st.floats(0, 20), min_size=80, max_size=80),
)
def test_no_traffic_is_counted_twice_or_left_out(
    period: float, phase: float, lost: set[int], late: list[float]
) -> None:
    scrapes = [START - 120 + (step + phase) * period for step in range(round(720 / period))]
    kept = [moment for number, moment in enumerate(scrapes) if number % 61 not in lost]
    counts = DriveCounts({"a/sda": "0:1"}, LAG)
    total, reached = 0, []
    for window in range(60):
        end = START + (window + 1) * WINDOW
        known = [moment for number, moment in enumerate(kept) if moment + late[number % len(late)] <= end]
        counts.add({"a/sda": {moment: counted(moment) for moment in known}})
        interval = counts.between(end - WINDOW, end)
        total += interval.counters.get("device_write_operations", 0)
        if interval.counters:
            reached += [
                (end - interval.gauges[DRIVES_AGE] - interval.gauges[DRIVES_SPAN], end - interval.gauges[DRIVES_AGE])
            ]
    for (_, before), (since, _) in pairwise(reached):
        assert since >= before - 0.1, "no scrape is in two windows"
    assert total == pytest.approx(sum((last - first) * 100 for first, last in reached), rel=1e-3, abs=20)
    if not lost and period <= WINDOW and reached:
        assert reached[-1][1] - reached[0][0] == pytest.approx(sum(last - first for first, last in reached), rel=1e-3)


def test_a_scrape_that_comes_late_is_the_next_windows() -> None:
    counts = DriveCounts({"a/sda": "0:1"}, LAG)
    counts.add({"a/sda": {START - 5: counted(START - 5), START + 2: counted(START + 2)}})
    first = counts.between(START, START + 10)
    counts.add({"a/sda": {START + 6: counted(START + 6), START + 16: counted(START + 16)}})
    second = counts.between(START + 10, START + 20)
    assert first.counters["device_write_operations"] == 700
    assert second.counters["device_write_operations"] == 1400


def test_scrapes_that_may_not_be_known_in_time_are_the_next_windows_always() -> None:
    counts = DriveCounts({"a/sda": "0:1"}, LAG)
    counts.add({"a/sda": {moment: counted(moment) for moment in (START - 5, START + 5, START + 9, START + 15)}})
    assert [each.counters["device_write_operations"] for each in windows(counts, 2)] == [1000, 1000]


def test_a_window_says_how_old_and_how_far_apart_the_worst_of_its_scrapes_are() -> None:
    counts = DriveCounts({"a/sda": "0:1", "b/sda": "0:2"}, LAG)
    counts.add({"a/sda": {each: counted(each) for each in (START - 6, START + 6)}})
    counts.add({"b/sda": {each: counted(each) for each in (START - 4, START + 1)}})
    gauges = counts.between(START, START + 10).gauges
    assert (gauges[DRIVES_AGE], gauges[DRIVES_SPAN]) == (9.0, 12.0)


def test_a_host_that_started_again_or_was_away_leaves_windows_without_its_drive() -> None:
    counts = DriveCounts({"a/sda": "0:1"}, LAG)
    begun_anew = replace(counted(START + 12), write_operations=3)
    away = START + 12 + LONGEST_SECONDS + 10
    counts.add({"a/sda": {START - 5: counted(START - 5), START + 2: counted(START + 2), START + 12: begun_anew}})
    assert counts.between(START, START + 10).counters
    assert counts.between(START + 10, START + 20) == Interval()
    counts.add({"a/sda": {away: counted(away), away + 5: counted(away + 5)}})
    assert counts.between(away - 5, away + 3) == Interval()
    assert counts.between(away + 3, away + 13).counters["device_write_operations"] == 500


def test_of_several_drives_each_has_its_own_and_a_sum_only_where_all_are_known() -> None:
    counts = DriveCounts({"a/sda": "0:1", "b/sda": "0:2"}, LAG)
    at = [START - 5, START + 5]
    counts.add({"a/sda": {each: counted(each) for each in at}, "b/sda": {each: counted(each, 10) for each in at}})
    counts.add({"c/sda": {each: counted(each) for each in at}})
    interval = counts.between(START, START + 10)
    assert interval.counters["device_write_operations"] == 1100
    assert (interval.counters["0:1.write_operations"], interval.counters["0:2.write_operations"]) == (1000, 100)
    assert interval.gauges["0:2.queue_depth"] == pytest.approx(0.04)
    counts.add({"b/sda": {START + 15: counted(START + 15, 10)}})
    interval = counts.between(START + 10, START + 20)
    assert interval.counters["0:2.write_operations"] == 100
    assert not any(name.startswith(("device_", "0:1")) for name in [*interval.counters, *interval.gauges])
