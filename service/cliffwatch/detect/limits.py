"""Limits that a workload sets, such as `p99 <= 20ms over any 10m`: how they are written, and which spans break them.

A percentile over a span of windows is that of the merged histogram, never an average. To judge it, no histogram has to
be merged: p99 is above a bound exactly where more than one in a hundred of the span's latencies are, so windows only
have to say how many they counted and how many of these were above.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from cliffwatch.units import parse_duration, parse_size

#: A span is judged when at least this part of it was measured.
JUDGED_FROM = 0.9
#: What a limit on findings may exclude; `degradation` is any of them.
EXCLUDABLE = ("cliff", "step", "drift", "spikes", "degradation")
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999, "max": 1.0}

_NUMBER = r"(?P<bound>\d+(?:\.\d+)?\s*[A-Za-zµ/]*)"
_OVER = r"(?:\s+over\s+any\s+(?P<over>\S+))?"
_LATENCY = re.compile(
    rf"(?P<measure>p50|p90|p99(?:\.9{{1,2}})?|max)(?:\s+of\s+(?P<operation>[a-z_]+))?\s*<=\s*{_NUMBER}{_OVER}"
)
_AMPLIFICATION = re.compile(rf"write amplification\s*<=\s*{_NUMBER}{_OVER}")
_THROUGHPUT = re.compile(rf"throughput\s*>=\s*{_NUMBER}{_OVER}")
_ABSENCE = re.compile(r"no\s+(?P<kind>\S+)")
_EXAMPLES = "`p99 <= 20ms over any 10m`, `throughput >= 100MB/s over any 1h`, `write amplification <= 2` or `no cliff`"


class Subject(StrEnum):
    """What a limit is about."""

    LATENCY = "latency"
    AMPLIFICATION = "write_amplification"
    THROUGHPUT = "throughput"
    FINDINGS = "findings"


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit as it was written (`text`) and understood.

    `bound` is in seconds, bytes per second, or a ratio; None for findings, of which `kind` must not occur. `measure` is
    a key of `QUANTILES`; `operation` is None for the latency that the run is spoken of by. It holds for every span of
    `over_seconds`, or over the whole load after its warm-up where that is None.
    """

    text: str
    subject: Subject
    bound: float | None = None
    measure: str = ""
    operation: str | None = None
    kind: str = ""
    over_seconds: float | None = None

    @property
    def quantile(self) -> float:
        return QUANTILES[self.measure]


class Interval(Protocol):
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


def parse_limit(text: str) -> Limit:
    """A limit from its text. Raises ValueError that says what would be right."""
    compact = " ".join(text.split())
    if match := _LATENCY.fullmatch(compact):
        bound = _duration(match["bound"], compact)
        found = Limit(compact, Subject.LATENCY, bound, match["measure"], match["operation"])
    elif match := _AMPLIFICATION.fullmatch(compact):
        found = Limit(compact, Subject.AMPLIFICATION, _ratio(match["bound"], compact))
    elif match := _THROUGHPUT.fullmatch(compact):
        found = Limit(compact, Subject.THROUGHPUT, _byte_rate(match["bound"], compact))
    elif match := _ABSENCE.fullmatch(compact):
        if match["kind"] not in EXCLUDABLE:
            raise ValueError(f"{text!r}: nothing is called {match['kind']!r}; write `no` and {_any_of(EXCLUDABLE)}")
        return Limit(compact, Subject.FINDINGS, kind=match["kind"])
    else:
        raise ValueError(f"{text!r} is not a limit; write one such as {_EXAMPLES}")
    over = match["over"]
    if over is None:
        return found
    return Limit(compact, found.subject, found.bound, found.measure, found.operation, over_seconds=_span(over, compact))


def breaches(tallies: Sequence[Tally], quantile: float, over_seconds: float | None) -> list[Breach]:
    """Where the quantile of the merged latencies is above the bound that the tallies were counted against.

    Spans of `over_seconds` begin with every window; all of it is one span where that is None.
    """
    broken = []
    for first, behind in sliding(tallies, over_seconds):
        inside = tallies[first:behind]
        count, above = sum(each.count for each in inside), sum(each.above for each in inside)
        if count > 0 and count - above < math.ceil(quantile * count - 1e-9):
            broken.append(span_of(inside, above / count, over_seconds))
    return joined(broken)


def span_of(inside: Sequence[Interval], badness: float, over_seconds: float | None) -> Span:
    """The span that these windows make; one over the whole load is broken by all of them and by none alone."""
    last_start = inside[0].start if over_seconds is None else inside[-1].start
    return Span(inside[0].start, last_start, inside[-1].end, badness)


def sliding(intervals: Sequence[Interval], over_seconds: float | None) -> list[tuple[int, int]]:
    """Index of the first interval of each span that can be judged, and that behind its last.

    A span of `over_seconds` begins with every interval; all of them are one span where that is None.
    """
    if over_seconds is None:
        return [(0, len(intervals))] if intervals else []
    spans, behind, measured = [], 0, 0.0
    for first, interval in enumerate(intervals):
        while behind < len(intervals) and intervals[behind].end <= interval.start + over_seconds + 1e-6:
            measured += intervals[behind].seconds
            behind += 1
        if measured >= over_seconds * JUDGED_FROM:
            spans.append((first, behind))
        measured -= interval.seconds
    return spans


def joined(spans: Iterable[Span]) -> list[Breach]:
    """Spans in order of start; those that overlap are one breach, with the worst of them."""
    found: list[Breach] = []
    for span in spans:
        last = found[-1] if found else None
        if last is None or span.start > last.until + 1e-6:
            found.append(Breach(span.last_start, span.end, span.end, span.start, span.end, span.badness, 1))
        elif span.badness > last.badness:
            worst = {"worst_start": span.start, "worst_end": span.end, "badness": span.badness}
            found[-1] = replace(last, until=span.end, spans=last.spans + 1, **worst)
        else:
            found[-1] = replace(last, until=span.end, spans=last.spans + 1)
    return found


def _duration(text: str, limit: str) -> float:
    """Seconds; `us` and `µs` too, which no other duration of a workload needs."""
    compact = text.replace(" ", "")
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)(?:us|µs)", compact):
        return _bound(lambda amount: float(amount) / 1e6, match[1], limit)
    return _bound(parse_duration, compact, limit)


def _span(text: str, limit: str) -> float:
    return _bound(parse_duration, text, limit, "over any ")


def _ratio(text: str, limit: str) -> float:
    return _bound(_number, text, limit)


def _byte_rate(text: str, limit: str) -> float:
    size, slash, unit = text.replace(" ", "").partition("/")
    if slash != "/" or unit != "s":
        raise ValueError(f"{limit!r}: {text!r} is not a rate; write a size a second, such as 100MB/s")
    return _bound(parse_size, size, limit)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a number; write a ratio such as 2 or 1.5") from error


def _bound(parse: Callable[[str], float], text: str, limit: str, place: str = "") -> float:
    """What `parse` makes of `text`, above zero; its complaint told of the `limit` and the `place` in it."""
    try:
        value = float(parse(text))
    except ValueError as error:
        raise ValueError(f"{limit!r}: {place}{error}") from error
    if value <= 0:
        raise ValueError(f"{limit!r} can never hold; write a bound above zero")
    return value


def _any_of(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
