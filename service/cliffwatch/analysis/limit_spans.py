"""Find the spans of a run that break a limit of its workload, such as `p99 <= 20ms over any 10m`.

A percentile over a span of windows is that of the merged histogram, never an average. To judge it, no histogram has to
be merged: p99 is above a bound exactly where more than one in a hundred of the span's latencies are, so windows only
have to say how many they counted and how many of these were above.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

#: A span is judged when at least this part of it was measured.
JUDGED_FROM = 0.9


class LimitInterval(Protocol):
    """An interval of which `seconds` were measured; bounds in seconds since the epoch."""

    @property
    def start(self) -> float: ...
    @property
    def end(self) -> float: ...
    @property
    def seconds(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Tally:
    """A window as a limit on latency sees it: `above` of its `count` latencies were above the bound."""

    start: float
    end: float
    seconds: float
    count: int
    above: int


@dataclass(frozen=True, slots=True)
class Span:
    """A span that breaks a limit, by how much; `last_start` is when its last window begins."""

    start: float
    last_start: float
    end: float
    badness: float


@dataclass(frozen=True, slots=True)
class Breach:
    """Overlapping spans that break a limit, and the worst of them.

    `start` and `end` are those of the window that broke it: the last window of the first span, without which the limit
    held. `until` is the end of the last span.
    """

    start: float
    end: float
    until: float
    worst_start: float
    worst_end: float
    badness: float
    spans: int


def breaches(tallies: Sequence[Tally], quantile: float, over_seconds: float | None) -> list[Breach]:
    """Breaches: spans whose merged quantile is above the bound that the tallies were counted against.

    Spans of `over_seconds` begin with every window; all of it is one span where that is None. A maximum over all of it
    is broken by each window that has a higher one, whatever the others have.
    """
    if over_seconds is None and quantile >= 1.0:
        return joined(span_of([each], each.above / each.count, 0.0) for each in tallies if each.above)
    broken = []
    for first, behind in sliding(tallies, over_seconds):
        inside = tallies[first:behind]
        count, above = sum(each.count for each in inside), sum(each.above for each in inside)
        if is_above(count, above, quantile):
            broken.append(span_of(inside, above / count, over_seconds))
    return joined(broken)


def is_above(count: int, above: int, quantile: float) -> bool:
    """Whether the quantile of `count` latencies is above a bound that `above` of them are above."""
    return count > 0 and count - above < math.ceil(quantile * count - 1e-9)


def span_of(inside: Sequence[LimitInterval], badness: float, over_seconds: float | None) -> Span:
    """The span that these windows make; one over the whole load is broken by all of them and by none alone."""
    last_start = inside[0].start if over_seconds is None else inside[-1].start
    return Span(inside[0].start, last_start, inside[-1].end, badness)


def sliding(intervals: Sequence[LimitInterval], over_seconds: float | None) -> list[tuple[int, int]]:
    """Index of the first interval of each span that can be judged, and that behind its last.

    A span of `over_seconds` begins with every interval; all of them are one span where that is None. A longer interval,
    such as fio's while a drive hangs, is a span by itself.
    """
    if over_seconds is None:
        return [(0, len(intervals))] if intervals else []
    spans, behind, measured = [], 0, 0.0
    for first, interval in enumerate(intervals):
        while behind < len(intervals) and intervals[behind].end <= interval.start + over_seconds + 1e-6:
            measured += intervals[behind].seconds
            behind += 1
        if behind == first:
            measured, behind = interval.seconds, first + 1
        if measured >= over_seconds * JUDGED_FROM:
            spans.append((first, behind))
        measured -= interval.seconds
    return spans


def joined(spans: Iterable[Span]) -> list[Breach]:
    """Spans in order of start; those that overlap are one breach, with the worst of them."""
    found: list[Breach] = []
    for span in spans:
        longer = extended(found[-1], span) if found else None
        if longer is None:
            found.append(begun(span))
        else:
            found[-1] = longer
    return found


def begun(span: Span) -> Breach:
    """New breach, which begins with this span."""
    return Breach(span.last_start, span.end, span.end, span.start, span.end, span.badness, 1)


def extended(breach: Breach, span: Span) -> Breach | None:
    """Breach extended by a later span; None where they do not overlap."""
    if span.start > breach.until + 1e-6:
        return None
    longer = replace(breach, until=span.end, spans=breach.spans + 1)
    if span.badness <= breach.badness:
        return longer
    return replace(longer, worst_start=span.start, worst_end=span.end, badness=span.badness)
