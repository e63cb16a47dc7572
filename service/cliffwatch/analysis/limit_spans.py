"""Find the spans of a run that break a limit of its workload, such as `p99 <= 20ms over any 10m`.

A percentile over a span of windows is that of the merged histogram, never an average. No histogram has to be merged to
judge it: p99 is above a bound exactly where more than one in a hundred of the span's latencies are above it, so each
window only has to provide its number of latencies, and how many of them are above the bound.
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
    """Window as a limit on latency counts it: `above` of its `count` latencies were above the bound."""

    start: float
    end: float
    seconds: float
    count: int
    above: int


@dataclass(frozen=True, slots=True)
class Span:
    """Span that breaks a limit, and by how much (`badness`); `last_start` is the start of its last window."""

    start: float
    last_start: float
    end: float
    badness: float


@dataclass(frozen=True, slots=True)
class Breach:
    """Overlapping spans that break a limit, and the worst of them.

    `start` and `end` bound the window at which the limit was first broken: the last one of the first span. `until` is
    the end of the last span.
    """

    start: float
    end: float
    until: float
    worst_start: float
    worst_end: float
    badness: float
    spans: int


def breaches(tallies: Sequence[Tally], quantile: float, over_seconds: float | None) -> list[Breach]:
    """Find breaches: spans whose merged quantile is above the bound for which the tallies were counted.

    A span of `over_seconds` begins at every window; where that is None, the whole load is one span. A maximum over the
    whole load is broken by each window with a latency above the bound, whatever the other windows have.
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
    """Whether the quantile of `count` latencies exceeds a bound that `above` of them exceed."""
    return count > 0 and count - above < math.ceil(quantile * count - 1e-9)


def span_of(inside: Sequence[LimitInterval], badness: float, over_seconds: float | None) -> Span:
    """Span of these windows. Over the whole load (`over_seconds` is None) no window alone breaks the limit, so that the
    span's `last_start` is its start."""
    last_start = inside[0].start if over_seconds is None else inside[-1].start
    return Span(inside[0].start, last_start, inside[-1].end, badness)


def sliding(intervals: Sequence[LimitInterval], over_seconds: float | None) -> list[tuple[int, int]]:
    """For each span that can be judged, the index of its first interval, and the index after its last.

    A span of `over_seconds` begins at every interval; without `over_seconds`, all intervals are one span. An interval
    longer than a span, such as fio's while a drive hangs, is a span by itself.
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
    """Join spans, in order of start, to breaches: overlapping spans are one breach, with the worst of them."""
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
