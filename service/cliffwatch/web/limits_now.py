"""A workload's limits while its run goes on: the value of each at this moment, and how far it is from its bound.

Values are of the same spans that the report judges, percentiles read off merged histograms. A watch follows a run's
journal and keeps no more than a limit's span of it, so that a page asks for little however long the run is.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cliffwatch.analysis.limit_spans import JUDGED_FROM
from cliffwatch.analysis.stalls import outstanding
from cliffwatch.base.errors import Problem
from cliffwatch.base.histogram import Histogram
from cliffwatch.base.units import format_amplification, format_share
from cliffwatch.journal import JournalReader, JournalWindow
from cliffwatch.model.limits import Limit, LimitSubject, parse_limit
from cliffwatch.model.operation import primary_latency
from cliffwatch.model.phase import JUDGED_PHASES
from cliffwatch.model.window import OLDEST_OUTSTANDING
from cliffwatch.report.format import byte_rate, duration, elapsed, latency

#: Windows that are read for one answer; a watch that is further behind says so and goes on with the next one.
BATCH = 2000
#: Runs that are watched at the same time; the one that was not asked for the longest is forgotten.
WATCHED_RUNS = 8


@dataclass(frozen=True, slots=True)
class LimitNow:
    """A limit as a page shows it: its text, the value, its margin, what the value is of, and whether it was broken."""

    text: str
    value: str
    margin: str
    note: str
    broken: bool


@dataclass(frozen=True, slots=True)
class Outside:
    """What is not in windows: by limit's span, the highest write amplification of the run's drives; found kinds."""

    amplification: dict[float | None, float]
    found: Sequence[str]


class _Slider:
    """One limit on latency or throughput over its span, window by window."""

    def __init__(self, limit: Limit, origin: float) -> None:
        self.limit = limit
        self.broken_at: float | None = None
        self._origin = origin
        self._inside: deque[JournalWindow] = deque()
        self._merged = Histogram()
        self._seconds = 0.0
        self._bytes = 0
        self._name = limit.operation

    def add(self, window: JournalWindow, reader: JournalReader) -> None:
        self._name = self._name or primary_latency(list(window.latency))
        # A window of the span is remembered by where it stands, not with all that it says.
        counters = {name: value for name, value in window.counters.items() if name in ("bytes", "operations")}
        gauges = {name: value for name, value in window.gauges.items() if name == OLDEST_OUTSTANDING}
        kept = replace(window, gauges=gauges, latency={}, counters=counters)
        self._take(window, reader, 1, window.seconds)
        if self.limit.over_seconds is not None:
            self._inside.append(replace(kept, gauges=gauges | {"measured_seconds": window.seconds}))
            while self._inside[0].start < window.end - self.limit.over_seconds - 1e-6:
                gone = self._inside.popleft()
                self._take(gone, reader, -1, gone.seconds)
        if self.broken_at is None and self.is_judged and self.is_beyond:
            self.broken_at = window.end

    def _take(self, window: JournalWindow, reader: JournalReader, sign: int, seconds: float) -> None:
        self._seconds += sign * seconds
        self._bytes += sign * window.counters.get("bytes", 0)
        if self.limit.subject is not LimitSubject.LATENCY or self._name is None:
            return
        try:
            histogram = reader.histograms(window).get(self._name)
        except Problem:
            return  # damaged there, which the report says
        for each in filter(None, (histogram, outstanding(window, self.limit))):
            (self._merged.merge if sign > 0 else self._merged.remove)(each)

    @property
    def is_judged(self) -> bool:
        over = self.limit.over_seconds
        return over is None or self._seconds >= over * JUDGED_FROM

    @property
    def value(self) -> float | None:
        if self.limit.subject is LimitSubject.LATENCY:
            return self._merged.percentiles_seconds([self.limit.quantile])[0]
        return self._bytes / self._seconds if self._seconds > 1e-9 else None

    @property
    def is_beyond(self) -> bool:
        return self.value is not None and is_beyond(self.limit, self.value)

    @property
    def note(self) -> str:
        over = self.limit.over_seconds
        if over is None:
            return "whole load so far"
        if not self.is_judged:
            return f"{duration(self._seconds)} of {duration(over)} measured so far"
        return f"last {duration(over)}"

    def now(self) -> LimitNow:
        show = latency if self.limit.subject is LimitSubject.LATENCY else byte_rate
        note = self.note
        if self.broken_at is not None:
            note += f"; broken at {elapsed(self.broken_at - self._origin)}"
        return LimitNow(
            self.limit.text, show(self.value), margin(self.limit, self.value), note, self.broken_at is not None
        )


class LimitWatch:
    """The limits of one run."""

    def __init__(self, directory: Path, limits: Sequence[str], origin: float) -> None:
        self.limits = [parse_limit(text) for text in limits]
        self._directory = directory
        self._next = 0
        self._sliders = {
            limit.text: _Slider(limit, origin)
            for limit in self.limits
            if limit.subject in (LimitSubject.LATENCY, LimitSubject.THROUGHPUT)
        }
        self._lock = threading.Lock()

    def read_on(self) -> bool:
        """Take in what the journal gained, a batch at most. Whether all of it was."""
        with self._lock:
            if not self._sliders:
                return True
            reader = JournalReader(self._directory)
            for count, window in enumerate(reader.windows(self._next)):
                if count == BATCH:
                    return False
                self._next = window.seq + 1
                if window.phase in JUDGED_PHASES and window.seconds > 0:
                    for slider in self._sliders.values():
                        slider.add(window, reader)
            return True

    def now(self, outside: Outside) -> list[LimitNow]:
        """Each limit, in the order of the workload."""
        with self._lock:
            return [
                self._sliders[limit.text].now() if limit.text in self._sliders else _of_outside(limit, outside)
                for limit in self.limits
            ]


class WatchedLimits:
    """The watches of the runs that pages show, a bounded number."""

    def __init__(self) -> None:
        self._watches: OrderedDict[tuple[str, float], LimitWatch] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, directory: Path, limits: Sequence[str], origin: float) -> LimitWatch:
        key = (str(directory), origin)
        with self._lock:
            watch = self._watches.pop(key, None) or LimitWatch(directory, limits, origin)
            self._watches[key] = watch
            while len(self._watches) > WATCHED_RUNS:
                self._watches.popitem(last=False)
            return watch


def is_beyond(limit: Limit, value: float) -> bool:
    bound = limit.bound or 0.0
    return value < bound if limit.subject is LimitSubject.THROUGHPUT else value > bound


def margin(limit: Limit, value: float | None) -> str:
    """How far a value is from its bound, on which side."""
    if value is None or not limit.bound:
        return ""
    share = format_share(abs(value - limit.bound) / limit.bound)
    if is_beyond(limit, value):
        where = "below" if limit.subject is LimitSubject.THROUGHPUT else "above"
        return f"{share} {where} the bound"
    return f"{share} to the bound"


def _of_outside(limit: Limit, outside: Outside) -> LimitNow:
    if limit.subject is LimitSubject.FINDINGS:
        count = sum(1 for kind in outside.found if limit.kind in (kind, "degradation"))
        return LimitNow(limit.text, f"{count} found" if count else "none found", "", "so far", count > 0)
    value = outside.amplification.get(limit.over_seconds)
    note = "whole load so far" if limit.over_seconds is None else f"last {duration(limit.over_seconds)}"
    if value is None:
        return LimitNow(limit.text, "–", "", "not measured: no drive of this run reports media bytes", False)
    return LimitNow(limit.text, format_amplification(value), margin(limit, value), note, is_beyond(limit, value))
