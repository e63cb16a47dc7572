"""Formats of what a command prints: each reads lines, and counts them in windows.

Times that a line has are of the wall clock; `ahead` puts them on the run's time line. A line that is not understood is
left out and counted, since programs print other things, too.
"""

import json
import math
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from cliffwatch.base.histogram import HIGHEST_NANOSECONDS, Histogram
from cliffwatch.base.interval_log import LONGER, LogClock, parse_interval
from cliffwatch.base.printed_numbers import PrintedNumbers
from cliffwatch.engines.command.definition import QUANTILE_GROUPS, RATE_GROUPS, Output
from cliffwatch.engines.command.totals import Totals
from cliffwatch.engines.command.windows import CommandWindows

#: Reads a line that was received at a moment of the run's time line. Raises one of `NOT_A_LINE` for another line.
LineReader = Callable[[str, float], None]
#: A first line within so many windows reports at most one of them: the time before was the program's start.
_STARTING_WINDOWS = 2.5
NOT_A_LINE = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)


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
    """HdrHistogram interval logs: an interval counts in the window of its middle."""

    def __init__(self, output: Output, windows: CommandWindows, ahead: float) -> None:
        self._unit = output.unit_nanoseconds
        self._windows = windows
        self._ahead = ahead
        self._clock = LogClock()
        #: Start of the last interval of each tag.
        self._begins: dict[str, float] = {}

    def __call__(self, line: str, received_at: float) -> None:
        self._clock.feed(line)
        interval = parse_interval(line)
        if interval is None:
            return
        begin = self._clock.moment(interval.start) + self._ahead
        histogram = Histogram.decode(interval.payload, round(self._unit))
        # Some writers state the interval's end instead of its length. An interval does not end after it was printed,
        # nor was the one before of its tag shorter.
        length = min(interval.length, max(0.0, received_at - begin))
        distance = begin - self._begins.get(interval.tag, -math.inf)
        if 0 < distance < length / LONGER:
            length = distance
        self._begins[interval.tag] = begin
        self._windows.add_histogram(begin + length / 2, length, histogram)


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
        if record.get("type") != "Point":
            return
        metric, data = record.get("metric"), record["data"]
        at = datetime.fromisoformat(str(data["time"])).timestamp() + self._ahead
        if metric == self._metric:
            self._windows.add_latency(at, _nanoseconds(float(data["value"]), 1e6))
        elif metric in self._counted:
            self._windows.add_count(at, self._counted[metric], _count(data["value"]))
        else:
            # While the target stalls, k6 still reports its virtual users.
            self._windows.hear(at)


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
        self._start = start
        self._last: float | None = None
        self._numbers = PrintedNumbers()
        self._totals = Totals()

    def __call__(self, line: str, received_at: float) -> None:
        found = self._pattern.search(line)
        if found is None:
            return
        begin, self._last = self._begin(received_at), received_at
        values = self._numbers.parse({name: text for name, text in found.groupdict().items() if text is not None})
        counts = self._totals.counts(values)
        self._windows.growing = self._totals.growing
        for name in RATE_GROUPS:
            if name in values:
                counts[name.removesuffix("_per_second")] = values[name] * (received_at - begin)
        quantiles = {name: values[name] * self._unit / 1e9 for name in QUANTILE_GROUPS if name in values}
        self._windows.add_line(begin, received_at, counts, quantiles)

    def _begin(self, received_at: float) -> float:
        """Begin of the time that a line reports."""
        if self._last is not None:
            return self._last
        # Before its first line a program may have been starting.
        window_seconds = self._windows.window_seconds
        is_starting = received_at - self._start <= _STARTING_WINDOWS * window_seconds
        return max(self._start, received_at - window_seconds) if is_starting else self._start


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
