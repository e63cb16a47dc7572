"""Formats of what a command prints: each reads lines, and counts them in windows.

Times that a line has are of the wall clock; `ahead` puts them on the run's time line. A line that is not understood is
left out and counted, since programs print other things, too.
"""

import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from cliffwatch.base.histogram import HIGHEST_NANOSECONDS, Histogram
from cliffwatch.engines.command.definition import COUNT_GROUPS, QUANTILE_GROUPS, RATE_GROUPS, Output
from cliffwatch.engines.command.windows import CommandWindows

#: Reads a line that was received at a moment of the run's time line. Raises one of `NOT_A_LINE` for another line.
LineReader = Callable[[str, float], None]
NOT_A_LINE = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)
_INTERVAL_LOG_COMMENT = ("#", '"StartTimestamp"')


def reader_of(output: Output, windows: CommandWindows, ahead: float, start: float) -> LineReader:
    """The reader of a format. `ahead`: from the wall clock to the run's time line; `start` of the load on it."""
    if output.format == "hdr":
        return _IntervalLog(output, windows, ahead)
    if output.format == "k6":
        return _K6(output, windows, ahead)
    if output.format == "latencies":
        return _Latencies(output, windows, ahead)
    assert output.pattern is not None, "validated"
    return _Progress(output, output.pattern, windows, start)


class _IntervalLog:
    """HdrHistogram interval logs: lines of [Tag=…,]start, length, maximum, histogram. Times are in seconds, the start
    since the epoch, or since `[StartTime: …]` or `[BaseTime: …]` where a comment gives one."""

    def __init__(self, output: Output, windows: CommandWindows, ahead: float) -> None:
        self._unit = output.unit_nanoseconds
        self._windows = windows
        self._ahead = ahead
        self._base = 0.0

    def __call__(self, line: str, received_at: float) -> None:
        if found := re.match(r"#\[(?:StartTime|BaseTime): ([0-9.]+)", line):
            self._base = float(found[1])
            return
        if line.startswith(_INTERVAL_LOG_COMMENT):
            return
        *_, start, length, _, payload = line.split(",")
        begin = float(start)
        # Times are since the base unless they are so large that they must be since the epoch.
        begin += self._base if begin < self._base / 2 else 0.0
        histogram = Histogram.decode(payload, round(self._unit))
        self._windows.add_histogram(begin + float(length) / 2 + self._ahead, histogram)


class _K6:
    """k6's stream of JSON (`--out json=-`): points of a duration in milliseconds, of failed requests, and of iterations
    that were due and found no free virtual user."""

    def __init__(self, output: Output, windows: CommandWindows, ahead: float) -> None:
        self._metric = output.metric
        #: Counters by metric.
        self._counted = {output.metric.removesuffix("_duration") + "_failed": "errors", "dropped_iterations": "skipped"}
        self._windows = windows
        self._ahead = ahead

    def __call__(self, line: str, received_at: float) -> None:
        record: dict[str, Any] = json.loads(line)
        metric = record.get("metric")
        if record.get("type") != "Point" or metric not in {self._metric, *self._counted}:
            return
        data = record["data"]
        at = datetime.fromisoformat(str(data["time"])).timestamp() + self._ahead
        if metric == self._metric:
            self._windows.add_latency(at, _nanoseconds(float(data["value"]), 1e6))
        elif data["value"]:
            self._windows.add_count(at, self._counted[str(metric)], _count(data["value"]))


class _Latencies:
    """Lines of two numbers: when an operation was due, in seconds since the epoch, and how long it took."""

    def __init__(self, output: Output, windows: CommandWindows, ahead: float) -> None:
        self._unit = output.unit_nanoseconds
        self._windows = windows
        self._ahead = ahead

    def __call__(self, line: str, received_at: float) -> None:
        start, latency = line.replace(",", " ").split()
        nanoseconds = _nanoseconds(float(latency), self._unit)
        self._windows.add_latency(float(start) + nanoseconds / 1e9 + self._ahead, nanoseconds)


class _Progress:
    """Lines that match a pattern: counts and rates since the line before, and quantiles of that time."""

    def __init__(self, output: Output, pattern: str, windows: CommandWindows, start: float) -> None:
        self._pattern = re.compile(pattern)
        self._unit = output.unit_nanoseconds
        self._windows = windows
        self._last = start

    def __call__(self, line: str, received_at: float) -> None:
        found = self._pattern.search(line)
        if found is None:
            return
        seconds, self._last = received_at - self._last, received_at
        # The line is of the time before it, which may be the whole window that has just ended.
        middle = received_at - seconds / 2
        values = {name: float(text.replace(",", "")) for name, text in found.groupdict().items() if text is not None}
        for name in COUNT_GROUPS:
            if name in values:
                self._windows.add_count(middle, name, values[name])
        for name in RATE_GROUPS:
            if name in values:
                self._windows.add_count(middle, name.removesuffix("_per_second"), values[name] * seconds)
        quantiles = {name: values[name] * self._unit / 1e9 for name in QUANTILE_GROUPS if name in values}
        if quantiles:
            self._windows.add_quantiles(middle, quantiles)


def _count(value: Any) -> int:
    """Raises ValueError for what is no count."""
    if isinstance(value, str) or not 0 <= value < 2**53:
        raise ValueError(f"{value!r:.40} is no count")
    return int(value)


def _nanoseconds(value: float, unit_nanoseconds: float) -> int:
    """Raises ValueError for what is no latency."""
    if not 0 <= value * unit_nanoseconds < 1e3 * HIGHEST_NANOSECONDS:
        raise ValueError(f"{value} is no latency")
    return round(value * unit_nanoseconds)
