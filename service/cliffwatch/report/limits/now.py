"""Current values of a live run's limits, and how far each is from its bound.

Breaches and worst values are found as in the report (`analysis/limit_spans.py`), over the same spans; percentiles are
those of merged histograms. A watch reads a run's journal incrementally and holds only the windows of a limit's span, so
a page request is cheap however long the run is.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cliffwatch.analysis.limit_spans import JUDGED_FROM, Breach, begun, extended, is_above, span_of
from cliffwatch.analysis.stalls import outstanding
from cliffwatch.base.errors import Problem
from cliffwatch.base.histogram import Histogram
from cliffwatch.base.units import format_amplification
from cliffwatch.journal import JournalReader, JournalWindow
from cliffwatch.model.limits import MEAN, Limit, LimitSubject, parse_limit
from cliffwatch.model.operation import primary_latency
from cliffwatch.model.phase import JUDGED_PHASES
from cliffwatch.model.window import OLDEST_OUTSTANDING
from cliffwatch.report.format import duration, elapsed, latency
from cliffwatch.report.limits.margin import is_beyond, margin
from cliffwatch.report.limits.of_parts import on_part, parts_of
from cliffwatch.report.limits.quotients import QUOTIENTS
from cliffwatch.report.part_view import as_part

#: Counters that a span's value is made of, and that tell a stalled window.
_COUNTERS = ("bytes", "operations", "errors", "skipped")
#: Windows that are read per request; a watch that is further behind reports that and continues with the next request.
BATCH = 2000
#: Maximum number of runs that are watched at the same time; the least recently requested is dropped.
WATCHED_RUNS = 8


@dataclass(frozen=True, slots=True)
class LimitNow:
    """A limit as a page shows it: its text, the value, its margin, the span of the value, and whether it was broken.

    `again`: it was broken earlier and holds now.
    """

    text: str
    value: str
    margin: str
    note: str
    broken: bool
    again: bool = False


@dataclass(frozen=True, slots=True)
class Outside:
    """Values that windows lack: write amplification by span of the limit (highest of all drives), kinds of findings."""

    amplification: dict[float | None, float]
    found: Sequence[str]


class _Slider:
    """Sliding window of one limit on a latency or a quotient of counters."""

    def __init__(self, limit: Limit, origin: float) -> None:
        self.limit = limit
        self._origin = origin
        self._inside: deque[JournalWindow] = deque()
        self._merged = Histogram()
        self._seconds = 0.0
        self._quotient = QUOTIENTS.get(limit.subject)
        self._over = self._under = 0.0
        self._name = limit.operation
        # Of a limit over a span: first breach, latest breach, worst value of the first, and number of breaches.
        self._first: Breach | None = None
        self._latest: Breach | None = None
        self._worst_of_first: float | None = None
        self._breaches = 0

    def add(self, window: JournalWindow, reader: JournalReader) -> None:
        self._name = self._name or primary_latency(list(window.latency))
        # Of each window of the span, only the fields that are needed again are held in memory.
        counters = {name: value for name, value in window.counters.items() if name in _COUNTERS}
        gauges = {name: value for name, value in window.gauges.items() if name == OLDEST_OUTSTANDING}
        latency = {name: summary for name, summary in window.latency.items() if name == self._name}
        kept = replace(window, gauges=gauges, latency=latency, counters=counters)
        over = self.limit.over_seconds
        # A span begins with a window, and is complete when the next window would end after it.
        while over is not None and self._inside and self._inside[0].start + over + 1e-6 < window.end:
            self._judge(over)
            gone = self._inside.popleft()
            self._take(gone, reader, -1, gone.seconds)
        self._take(window, reader, 1, window.seconds)
        if over is not None:
            self._inside.append(replace(kept, gauges=gauges | {"measured_seconds": window.seconds}))
            if window.end >= self._inside[0].start + over - 1e-6:
                self._judge(over)

    def _judge(self, over_seconds: float) -> None:
        """Record a breach if the span that begins with the oldest window in memory breaks the limit. Safe to repeat."""
        badness = self._badness if self.is_judged else None
        if badness is None:
            return
        span = span_of(self._inside, badness, over_seconds)
        longer = None if self._latest is None else extended(self._latest, span)
        if longer is None:
            self._breaches += 1
        self._latest = longer or begun(span)
        if self._breaches == 1:
            if longer is None or longer.worst_start == span.start:
                self._worst_of_first = self.value
            self._first = self._latest

    @property
    def _badness(self) -> float | None:
        """How badly the windows in memory break the limit: share of latencies above it, or the rate, negated.

        None where the limit holds.
        """
        if self._quotient is not None or self.limit.measure == MEAN:
            sign = -1.0 if self.limit.is_least else 1.0
            return sign * (self.value or 0.0) if self.is_beyond else None
        count = self._merged.count
        above = count - self._merged.cumulative_counts([self.limit.bound or 0.0])[0]
        return above / count if is_above(count, above, self.limit.quantile) else None

    def _take(self, window: JournalWindow, reader: JournalReader, sign: int, seconds: float) -> None:
        self._seconds += sign * seconds
        if self._quotient is not None:
            self._over += sign * self._quotient.over(window)
            self._under += sign * self._quotient.under(window)
        if self.limit.subject is not LimitSubject.LATENCY or self._name is None:
            return
        try:
            histogram = reader.histograms(window).get(self._name)
        except Problem:
            return  # latency.hlog is damaged there; the report lists it
        for each in filter(None, (histogram, outstanding(window, self.limit))):
            (self._merged.merge if sign > 0 else self._merged.remove)(each)

    @property
    def is_judged(self) -> bool:
        over = self.limit.over_seconds
        return over is None or self._seconds >= over * JUDGED_FROM

    @property
    def value(self) -> float | None:
        if self._quotient is not None:
            return self._over / self._under if self._under > 1e-9 else None
        if self.limit.measure == MEAN:
            return self._merged.sum_seconds() / self._merged.count if self._merged.count else None
        return self._merged.percentiles_seconds([self.limit.quantile])[0]

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
        show = latency if self._quotient is None else self._quotient.show
        is_broken, note = self._first is not None, self.note
        if self._first is not None:
            start, worst = self._first.start - self._origin, show(self._worst_of_first)
            note += f"; {first_words(start, worst, self._breaches)}"
        elif self.limit.over_seconds is None:
            # A limit over the whole load is broken by no single window: it may still hold at the end.
            is_broken = self.is_beyond
        value, away = show(self.value), margin(self.limit, self.value)
        return LimitNow(self.limit.text, value, away, note, is_broken, is_broken and not self.is_beyond)


def first_words(start_seconds: float, worst: str, breaches: int) -> str:
    """Text on a limit's first breach: start of its window, as in the report, worst value, count of later breaches."""
    again = f", {breaches - 1} {'time' if breaches == 2 else 'times'} more" if breaches > 1 else ""
    return f"first at {elapsed(start_seconds)} ({worst} at worst){again}"


class LimitWatch:
    """Current state of the limits of one run, whose journal it follows."""

    def __init__(self, directory: Path, limits: Sequence[str], origin: float, parts: Sequence[str] = ()) -> None:
        """`origin`: start of the load. `parts`: names of the run's parts, if it has several."""
        self.limits = [parse_limit(text) for text in limits]
        self._directory = directory
        self._next = 0
        self._sliders = {
            limit.text: _sliders_of(limit, origin, parts)
            for limit in self.limits
            if limit.subject is LimitSubject.LATENCY or limit.subject in QUOTIENTS
        }
        self._lock = threading.Lock()

    def read_on(self) -> bool:
        """Read the journal's new windows, a batch at most. Returns whether that was all of them."""
        with self._lock:
            if not self._sliders:
                return True
            reader = JournalReader(self._directory)
            for count, window in enumerate(reader.windows(self._next)):
                if count == BATCH:
                    return False
                self._next = window.seq + 1
                if window.phase in JUDGED_PHASES and window.seconds > 0:
                    for sliders in self._sliders.values():
                        for part, slider in sliders.items():
                            slider.add(as_part(window, part) if part else window, reader)
            return True

    def now(self, outside: Outside) -> list[LimitNow]:
        """Current state of each limit, in the workload's order."""
        with self._lock:
            return [
                _worst(self._sliders[limit.text]) if limit.text in self._sliders else _of_outside(limit, outside)
                for limit in self.limits
            ]


def _sliders_of(limit: Limit, origin: float, parts: Sequence[str]) -> dict[str, _Slider]:
    """Slider of a limit by the parts that it is on; with an empty name that of the run as a whole."""
    own = parts_of(limit, parts) if len(parts) > 1 else []
    return {part: _Slider(on_part(limit, part), origin) for part in own} or {"": _Slider(limit, origin)}


def _worst(sliders: Mapping[str, _Slider]) -> LimitNow:
    """State of a limit: of one on several parts, that of the part which is furthest beyond the bound, or nearest."""
    if len(sliders) == 1:
        return next(iter(sliders.values())).now()
    states = {part: slider.now() for part, slider in sliders.items()}

    def badness(part: str) -> tuple[bool, bool, float]:
        value, sign = sliders[part].value or 0.0, -1.0 if sliders[part].limit.is_least else 1.0
        return states[part].broken and not states[part].again, states[part].broken, sign * value

    part = max(states, key=badness)
    return replace(states[part], value=f"{part}: {states[part].value}")


class WatchedLimits:
    """Cache of `LimitWatch`es, one for each run whose page is open, of bounded size."""

    def __init__(self) -> None:
        self._watches: OrderedDict[tuple[str, float], LimitWatch] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, directory: Path, limits: Sequence[str], origin: float, parts: Sequence[str] = ()) -> LimitWatch:
        key = (str(directory), origin)
        with self._lock:
            watch = self._watches.pop(key, None) or LimitWatch(directory, limits, origin, parts)
            self._watches[key] = watch
            while len(self._watches) > WATCHED_RUNS:
                self._watches.popitem(last=False)
            return watch


def _of_outside(limit: Limit, outside: Outside) -> LimitNow:
    if limit.subject is LimitSubject.FINDINGS:
        count = sum(1 for kind in outside.found if limit.kind in (kind, "degradation"))
        return LimitNow(limit.text, f"{count} found" if count else "none found", "", "so far", count > 0)
    if limit.subject in (LimitSubject.ISOLATED, LimitSubject.RECOVERY):
        return LimitNow(limit.text, "–", "", "judged when the load is over", False)
    value = outside.amplification.get(limit.over_seconds)
    note = "whole load so far" if limit.over_seconds is None else f"last {duration(limit.over_seconds)}"
    if value is None:
        return LimitNow(limit.text, "–", "", "not measured: no drive of this run reports media bytes", False)
    return LimitNow(limit.text, format_amplification(value), margin(limit, value), note, is_beyond(limit, value))


def judged_limit(row: dict[str, Any]) -> LimitNow:
    """Limit of a finished run, from a row of its report: whether it held, and when it was first broken."""
    broken = row["broken"]
    value = "broken" if broken else "held" if row["held"] else "not judged"
    note = row.get("unjudged", "")
    if broken:
        breaches = len(broken) + row.get("broken_omitted", 0)
        note = first_words(broken[0]["start_seconds"], broken[0]["worst"], breaches)
    return LimitNow(row["limit"], value, row.get("margin", ""), note, bool(broken))
