"""How much was measured, and where it was not."""

import pytest

from cliffwatch.analysis.coverage import UNEXPLAINED, Gap, MeasuredInterval, measure_coverage


def grid(*indices: int) -> list[MeasuredInterval]:
    """Windows of ten seconds, by their numbers."""
    return [MeasuredInterval(index * 10.0, index * 10.0 + 10.0, 10.0) for index in indices]


def test_all_windows_cover_everything() -> None:
    coverage = measure_coverage(grid(0, 1, 2), 0.0, 30.0, 10.0)
    assert (coverage.asked_seconds, coverage.measured_seconds, coverage.ratio, coverage.gaps) == (30.0, 30.0, 1.0, ())


def test_holes_at_the_start_in_the_middle_and_at_the_end_are_gaps() -> None:
    coverage = measure_coverage(grid(1, 3), 0.0, 50.0, 10.0)
    assert [(gap.start, gap.end) for gap in coverage.gaps] == [(0.0, 10.0), (20.0, 30.0), (40.0, 50.0)]
    assert coverage.measured_seconds == 20.0
    assert coverage.ratio == 0.4


def test_a_gap_takes_its_reason_from_the_events_that_overlap_it_and_is_unexplained_without_one() -> None:
    recorded = [Gap(9.0, 21.0, "engine_restart"), Gap(18.0, 20.0, "worker_killed"), Gap(20.0, 30.0, "elsewhere")]
    coverage = measure_coverage(grid(0, 2, 4), 0.0, 50.0, 10.0, recorded)
    assert [gap.reason for gap in coverage.gaps] == ["engine_restart, worker_killed", UNEXPLAINED]


def test_rounding_of_bounds_is_not_a_gap() -> None:
    windows = [MeasuredInterval(0.0, 9.95, 9.95), MeasuredInterval(10.0, 20.0, 10.0)]
    assert measure_coverage(windows, 0.0, 20.0, 10.0).gaps == ()
    windows = [MeasuredInterval(0.0, 9.85, 9.85), MeasuredInterval(10.0, 20.0, 10.0)]
    assert len(measure_coverage(windows, 0.0, 20.0, 10.0).gaps) == 1


def test_windows_are_clipped_to_what_was_asked() -> None:
    coverage = measure_coverage(grid(0, 1, 2), 5.0, 22.0, 10.0)
    assert coverage.measured_seconds == pytest.approx(17.0)
    assert coverage.ratio == pytest.approx(1.0)


def test_time_that_two_windows_claim_counts_once() -> None:
    windows = [MeasuredInterval(0.0, 10.0, 10.0), MeasuredInterval(5.0, 15.0, 10.0), MeasuredInterval(6.0, 9.0, 3.0)]
    assert measure_coverage(windows, 0.0, 15.0, 10.0).measured_seconds == pytest.approx(15.0)


def test_a_window_measured_in_part_counts_for_that_part() -> None:
    windows = [MeasuredInterval(0.0, 10.0, 4.0), *grid(1)]
    coverage = measure_coverage(windows, 0.0, 20.0, 10.0)
    assert coverage.measured_seconds == pytest.approx(14.0)
    assert coverage.partial_windows == 1
    assert coverage.partial_seconds == pytest.approx(6.0)
    assert coverage.gaps == ()


def test_asking_for_nothing_covers_nothing() -> None:
    assert measure_coverage([], 10.0, 10.0, 10.0).ratio == 0.0
