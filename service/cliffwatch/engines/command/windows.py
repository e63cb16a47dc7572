"""Windows of what a command prints, counted as it is read.

Only what a line reports was measured. A command that prints nothing for a while may have buffered its output, or waited
for its target: a window without a line is not measured, whatever the next line holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cliffwatch.base.histogram import Histogram
from cliffwatch.model.window import EngineWindow

#: A line that reports more than this many windows does not say what happened in each of them.
LONG_WINDOWS = 1.5
#: A line that comes so long after a window's end may still be that window's: in seconds, and as a part of it.
CLOSING_SECONDS, _CLOSING_PART = 0.25, 0.05
#: A window is measured in whole if less than this part of it is missing; the load's last one if less than half is.
_ROUNDING_PART, _LAST_PART = 0.01, 0.5


@dataclass(slots=True)
class _OpenWindow:
    counts: dict[str, float] = field(default_factory=dict)
    latency: Histogram = field(default_factory=Histogram)
    quantiles: dict[str, float] = field(default_factory=dict)
    #: Seconds that lines of progress report; None of exact formats.
    reported_seconds: float | None = None


class CommandWindows:
    """Windows in their order. What comes for one that was just taken counts in the next."""

    def __init__(self, operation: str, start: float, window_seconds: float, rate: float | None) -> None:
        """`start` in seconds since the epoch; `rate`: operations a second that the command is to make."""
        self._operation = operation
        self._start = start
        self._window_seconds = window_seconds
        self._rate = rate
        self._taken = 0
        self._open: dict[int, _OpenWindow] = {}
        self._late = 0
        #: Name of a count that only grows, so that it must be a total; empty without one.
        self.growing = ""
        #: Windows that the last line of progress reports: of each the number, and the share of the line.
        self._shares: list[tuple[int, float]] = []
        self._reported_until = start

    @property
    def window_seconds(self) -> float:
        """Length of a window."""
        return self._window_seconds

    def add_latency(self, at: float, nanoseconds: int) -> None:
        """Count an operation that was completed at a moment."""
        if (window := self._at(at)) is not None:
            window.latency.record(nanoseconds)
            self._count(window, "operations", 1)

    def add_histogram(self, at: float, seconds: float, histogram: Histogram) -> None:
        """Count the operations of an interval of `seconds` around a moment. Raises ValueError for a long one."""
        if seconds > LONG_WINDOWS * self._window_seconds:
            raise ValueError(f"an interval of {seconds:g} s is longer than the window of {self._window_seconds:g} s")
        if (window := self._at(at)) is not None:
            window.latency.merge(histogram)
            self._count(window, "operations", histogram.count)

    def hear(self, at: float) -> None:
        """Note that a line reports a moment, in which no operation was completed."""
        self._at(at)

    def add_count(self, at: float, name: str, count: float) -> None:
        """Count operations, or bytes, at a moment."""
        if (window := self._at(at)) is not None:
            self._count(window, name, count)

    def add_line(self, begin: float, end: float, counts: Mapping[str, float], seconds: Mapping[str, float]) -> None:
        """Count what a line reports of the time from `begin` to `end`, each window its share; `seconds`: its quantiles,
        of several in a window the highest of each. Of a long line only the window in which it ends has a share. A line
        that came together with the one before has no time of its own, and counts as that one does."""
        if end > begin or not self._shares:
            self._spread(begin, end)
        for number, share in self._shares:
            for name, count in counts.items():
                self._count(self._open[number], name, count * share)
        middle = min(max(self._number(end - (end - begin) / 2), self._shares[0][0]), self._shares[-1][0])
        quantiles = self._open[middle].quantiles
        for name, value in seconds.items():
            quantiles[name] = max(value, quantiles.get(name, value))

    def _spread(self, begin: float, end: float) -> None:
        """Share the time that a line reports among windows that are not taken."""
        length, first = end - begin, max(self._number(begin), self._taken)
        last = max(self._number(end), first)
        if length > LONG_WINDOWS * self._window_seconds:
            closing = max(CLOSING_SECONDS, _CLOSING_PART * self._window_seconds)
            first = max(self._number(end - closing), first)
        self._shares = []
        for number in range(first, last + 1):
            window_begin = self._start + number * self._window_seconds
            reported = min(end, window_begin + self._window_seconds) - max(begin, window_begin)
            if reported > 0 or first == last:
                window = self._open.setdefault(number, _OpenWindow())
                window.reported_seconds = (window.reported_seconds or 0.0) + max(0.0, reported)
                self._shares.append((number, max(0.0, reported) / length if length > 0 else 1.0))
        self._reported_until = end

    def is_reported(self) -> bool:
        """Whether a line of progress reports the end of the next window: none that comes later is about it."""
        return self._reported_until >= self._start + (self._taken + 1) * self._window_seconds

    def take(self, measured_seconds: float | None = None, *, is_last: bool = False) -> EngineWindow | None:
        """The next window, which is over, or None where no line reports it. `measured_seconds` where it was not
        measured to its end; `is_last` of the load, after which a command may print nothing more."""
        begin = self._start + self._taken * self._window_seconds
        found = self._open.pop(self._taken, None)
        self._taken += 1
        if found is None:
            return None
        counters = {"operations": 0, "errors": 0} | {name: round(count) for name, count in found.counts.items()}
        gauges = {} if self._rate is None else {"requested_operations_per_second": self._rate}
        measured = self._window_seconds if measured_seconds is None else measured_seconds
        if found.reported_seconds is not None:
            missing = 1 - found.reported_seconds / self._window_seconds
            if missing > (_LAST_PART if is_last else _ROUNDING_PART):
                measured = min(measured, found.reported_seconds)
        if measured < self._window_seconds:
            gauges["measured_seconds"] = round(measured, 6)
        latency = {self._operation: found.latency} if found.latency.count else {}
        quantiles = {self._operation: found.quantiles} if found.quantiles and not latency else {}
        return EngineWindow(begin, begin + self._window_seconds, counters, gauges, latency, quantiles)

    def take_late(self) -> int:
        """Number of lines, since the last call, that came more than a window after the one they belong to was taken."""
        late, self._late = self._late, 0
        return late

    def _at(self, moment: float) -> _OpenWindow | None:
        """The window of a moment; None before the first, and for one that was taken too long ago."""
        number = self._number(moment)
        if number < 0:
            return None
        if number < self._taken - 1:
            self._late += 1
            return None
        return self._open.setdefault(max(number, self._taken), _OpenWindow())

    def _number(self, moment: float) -> int:
        return int((moment - self._start) // self._window_seconds)

    @staticmethod
    def _count(window: _OpenWindow, name: str, count: float) -> None:
        window.counts[name] = window.counts.get(name, 0) + count
