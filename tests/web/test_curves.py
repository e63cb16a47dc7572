"""What live pages and lists draw of a journal: gaps stay gaps, and a small curve tells the cliff in words."""

from pathlib import Path

import pytest
from tests.recorded_runs import LOAD_START, JournalPlan, make_journal

from cliffwatch.engines.synthetic import SyntheticLoad
from cliffwatch.journal import files
from cliffwatch.web.curves import CURVE_POINTS, columns_of, device_write_latency, small_curve


def test_windows_that_are_missing_leave_a_row_of_nothing(tmp_path: Path) -> None:
    directory = make_journal(tmp_path / "run", JournalPlan(windows=6, missing={2, 3}))
    series = columns_of(directory, LOAD_START)
    columns = dict(zip(series["names"], series["columns"], strict=True))
    assert columns["elapsed"] == pytest.approx([10, 20, 20.001, 50, 60])
    assert [value is None for value in columns["p99"]] == [False, False, True, False, False]
    assert columns["operations_per_second"][2] is None
    assert series["last_window"] == 3


def test_a_small_curve_reads_few_lines_of_a_long_run_and_says_what_it_shows(tmp_path: Path) -> None:
    load = SyntheticLoad(median_latency="2ms", cliff_after="1000s", cliff_ratio=100)
    directory = make_journal(tmp_path / "run", JournalPlan(windows=200, load=load))
    curve = small_curve(directory)
    assert curve is not None
    heights = [float(point.split(",")[1]) for point in curve.points.split()]
    assert 2 <= len(heights) <= CURVE_POINTS
    # Down on the screen is small: the cliff ends above where it began.
    assert heights[-1] < heights[0] - 10
    assert curve.words.startswith("p99 from ")
    (directory / files.WINDOWS).write_bytes(b"")
    assert small_curve(directory) is None


def test_a_devices_latency_is_its_time_by_its_writes() -> None:
    counted = {"device_write_operations": 50, "device_write_milliseconds": 100}
    assert device_write_latency(counted) == pytest.approx(0.002)
    assert device_write_latency({"device_write_operations": 0, "device_write_milliseconds": 0}) is None
    assert device_write_latency({}) is None
