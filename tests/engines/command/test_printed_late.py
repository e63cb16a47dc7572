"""Commands that print late, much at once, or nothing for a while: what no line reports was not measured."""

import json

import pytest
from tests.engines.command.lines import START, read, taken

from cliffwatch.base.histogram import Histogram
from cliffwatch.engines.command.formats import LineReader
from cliffwatch.engines.command.windows import CommandWindows
from cliffwatch.model.window import EngineWindow

RATE = r"rate: (?P<operations_per_second>[0-9.]+) op/s p99: (?P<p99>[0-9.]+) ms"
COUNT = r"(?P<operations>[0-9]+) done, slowest (?P<max>[0-9.]+) ms"


def progress(pattern: str) -> tuple[CommandWindows, LineReader]:
    return read({"format": "progress", "pattern": pattern, "unit": "milliseconds"})


def take(windows: CommandWindows, count: int) -> list[EngineWindow | None]:
    return [windows.take() for _ in range(count)]


def measured(window: EngineWindow | None) -> float:
    return 0.0 if window is None else window.gauges.get("measured_seconds", window.end - window.start)


@pytest.mark.parametrize(
    ("pattern", "text"), [(RATE, "rate: 100.0 op/s p99: 2.1 ms"), (COUNT, "100 done, slowest 9 ms")]
)
def test_a_buffer_of_lines_is_no_burst_and_what_was_before_it_is_not_measured(pattern: str, text: str) -> None:
    """A line a second, of 100 operations, that arrive forty at a time, in windows of ten seconds."""
    windows, line = progress(pattern)
    found: list[EngineWindow | None] = []
    for chunk in (43.0, 83.0, 123.0):
        found += take(windows, int(chunk // 10) - len(found))
        for _ in range(40):
            line(text, START + chunk)
    found += take(windows, 2)
    assert [window is not None for window in found] == [place in (4, 8, 12) for place in range(14)]
    for window in (found[8], found[12]):
        assert window is not None
        assert measured(window) == pytest.approx(3.0)
        assert window.counters["operations"] / measured(window) == pytest.approx(100, rel=0.05)


def test_a_buffer_that_comes_right_after_a_window_counts_in_that_window() -> None:
    windows, line = progress(RATE)
    line("rate: 100.0 op/s p99: 2.1 ms", START + 9)
    take(windows, 3)
    for _ in range(40):
        line("rate: 100.0 op/s p99: 2.1 ms", START + 40.1)
    window = taken(windows)
    assert (window.start, window.counters["operations"], measured(window)) == (START + 30, 1000, 10)
    assert measured(windows.take()) == pytest.approx(0.1), "lines of the same moment have no time of their own"


@pytest.mark.parametrize("seconds", [9.6, 10.4, 14.0])
def test_lines_that_are_a_little_longer_or_shorter_than_a_window_are_shared_among_windows(seconds: float) -> None:
    windows, line = progress(COUNT)
    found: list[EngineWindow | None] = []
    for number in range(1, 100):
        at = number * seconds
        while at > 10 * (len(found) + 1) + 15.25:
            found.append(windows.take())
        line(f"{round(100 * seconds)} done, slowest 9 ms", START + at)
    assert len(found) > 80
    for window in found[2:]:
        assert measured(window) == pytest.approx(10)
        assert window is not None
        assert window.counters["operations"] == pytest.approx(1000, abs=2)


def test_the_last_window_of_a_load_is_measured_though_the_command_ended_within_it() -> None:
    windows, line = progress(RATE)
    for second in range(1, 8):
        line("rate: 100.0 op/s p99: 2.1 ms", START + second)
    window = windows.take(is_last=True)
    assert window is not None
    assert (window.counters["operations"], measured(window)) == (700, 10)


def test_a_stall_in_which_a_command_prints_is_measured() -> None:
    windows, line = progress(RATE)
    for second in range(1, 31):
        line(f"rate: {0.0 if 10 < second <= 20 else 100.0} op/s p99: 2.1 ms", START + second)
    assert [taken(windows).counters["operations"] for _ in range(3)] == [1000, 0, 1000]


def test_the_longest_latency_of_a_stall_is_kept_though_nothing_was_printed_meanwhile() -> None:
    windows, line = progress(COUNT)
    for second in (5, 10):
        line("500 done, slowest 9 ms", START + second)
    take(windows, 4)
    line("1 done, slowest 30000 ms", START + 40.4)
    line("480 done, slowest 9 ms", START + 45.4)
    window = taken(windows)
    assert window.quantiles == {"write": {"max": 30.0}}
    assert measured(window) == pytest.approx(5.4)
    assert window.counters["operations"] == 480


def test_a_command_that_takes_a_while_to_start_is_measured_from_its_first_line_on() -> None:
    windows, line = progress(RATE)
    line("rate: 100.0 op/s p99: 2.1 ms", START + 14)
    line("rate: 100.0 op/s p99: 2.1 ms", START + 19)
    window = taken(windows)
    assert (window.counters["operations"], measured(window)) == (600, 6), "the first line reports ten seconds at most"


def test_latencies_that_come_minutes_late_are_no_burst() -> None:
    windows, line = read({"format": "latencies", "unit": "milliseconds"})
    take(windows, 12)
    for tenth in range(1250):
        line(f"{START + tenth / 10} 5", START + 125)
    window = taken(windows)
    assert window.counters["operations"] == 150, "of its own time, and of the window just taken"
    assert windows.take_late() == 1100
    assert windows.take_late() == 0


def test_k6_measures_while_it_reports_its_users() -> None:
    windows, line = read({"format": "k6"})
    data = {"time": "2026-09-21T14:13:24Z", "value": 5, "tags": {}}
    line(json.dumps({"type": "Point", "metric": "vus", "data": data}), START + 5)
    assert taken(windows).counters["operations"] == 0
    assert windows.take() is None


def test_intervals_that_are_longer_than_a_window_are_not_understood() -> None:
    windows, line = read({"format": "hdr"})
    with pytest.raises(ValueError, match="an interval of 60 s is longer than the window of 10 s"):
        line(f"{START},60.0,5.0,{Histogram.from_values({5_000_000: 10}).encode()}", START + 60)
    assert windows.take() is None
