"""Windows of what a command prints, counted as it is read."""

from dataclasses import dataclass, field

from cliffwatch.base.histogram import Histogram
from cliffwatch.model.window import EngineWindow


@dataclass(slots=True)
class _OpenWindow:
    counts: dict[str, float] = field(default_factory=dict)
    latency: Histogram = field(default_factory=Histogram)
    quantiles: dict[str, float] = field(default_factory=dict)


class CommandWindows:
    """Windows in their order. What comes for one that is taken counts in the next."""

    def __init__(self, operation: str, start: float, window_seconds: float, rate: float | None) -> None:
        """`start` in seconds since the epoch; `rate`: operations a second that the command is to make."""
        self._operation = operation
        self._start = start
        self._window_seconds = window_seconds
        self._rate = rate
        self._taken = 0
        self._open: dict[int, _OpenWindow] = {}

    def add_latency(self, at: float, nanoseconds: int) -> None:
        """Count an operation that was completed at a moment."""
        if (window := self._at(at)) is not None:
            window.latency.record(nanoseconds)
            self._count(window, "operations", 1)

    def add_histogram(self, at: float, histogram: Histogram) -> None:
        """Count the operations of an interval around a moment."""
        if (window := self._at(at)) is not None:
            window.latency.merge(histogram)
            self._count(window, "operations", histogram.count)

    def add_count(self, at: float, name: str, count: float) -> None:
        if (window := self._at(at)) is not None:
            self._count(window, name, count)

    def add_quantiles(self, at: float, seconds: dict[str, float]) -> None:
        """Keep quantiles of an interval that ended at a moment; of several in a window, the highest of each."""
        if (window := self._at(at)) is not None:
            for name, value in seconds.items():
                window.quantiles[name] = max(value, window.quantiles.get(name, value))

    def take(self, measured_seconds: float | None = None) -> EngineWindow:
        """The next window, which is over; `measured_seconds` where it was not measured to its end."""
        begin = self._start + self._taken * self._window_seconds
        found = self._open.pop(self._taken, _OpenWindow())
        self._taken += 1
        counters = {"operations": 0, "errors": 0} | {name: round(count) for name, count in found.counts.items()}
        gauges = {} if self._rate is None else {"requested_operations_per_second": self._rate}
        if measured_seconds is not None:
            gauges["measured_seconds"] = measured_seconds
        latency = {self._operation: found.latency} if found.latency.count else {}
        quantiles = {self._operation: found.quantiles} if found.quantiles and not latency else {}
        return EngineWindow(begin, begin + self._window_seconds, counters, gauges, latency, quantiles)

    def _at(self, moment: float) -> _OpenWindow | None:
        """The window of a moment; None before the first."""
        number = int((moment - self._start) // self._window_seconds)
        return self._open.setdefault(max(number, self._taken), _OpenWindow()) if number >= 0 else None

    @staticmethod
    def _count(window: _OpenWindow, name: str, count: float) -> None:
        window.counts[name] = window.counts.get(name, 0) + count
