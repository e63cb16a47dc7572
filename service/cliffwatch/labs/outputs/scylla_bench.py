"""Read scylla-bench: a line for each second, with operations, rows, errors and latencies since the line before.

Columns are known by the header. The time is that since the start, to 0.1 s; latencies have two or three digits.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from cliffwatch.analysis.table import ERRORS_COLUMN
from cliffwatch.labs.outputs.go_durations import GO_DURATION, go_seconds
from cliffwatch.labs.outputs.rows import (
    RATE_COLUMN,
    BadLineError,
    Progress,
    Reading,
    known,
    require_total,
    rows_of_intervals,
)

_HEAD = re.compile(r" *time +(?:ops|operations)/s +rows/s +errors\b(?P<latencies>.*)")
_LATENCIES = {
    "max": "max",
    "99.9th": "p999",
    "99th": "p99",
    "95th": "p95",
    "90th": "p90",
    "median": "p50",
    "mean": "mean",
}
_BEGINNING = re.compile(r" *\d[\d.hm]*(?:[nuµμm]?s) +\d")
#: What follows the latencies of a line was written by the log, which goes on in the line that has not ended.
_LINE = re.compile(
    rf" *(?P<time>{GO_DURATION}) +(?P<operations>\d{{1,15}}) +(?P<rows>\d{{1,15}}) +(?P<errors>\d{{1,15}})"
    rf"(?P<latencies>(?: +{GO_DURATION}){{{len(_LATENCIES)}}})"
)
_TOTAL = re.compile(r"Total (?P<what>ops|rows|errors):\s+(?P<count>\d{1,15})\s*$")
_REMEDY = "give the output as it is"


@dataclass(frozen=True, slots=True)
class _Interval:
    """Line: seconds since the start; operations, rows and errors since the line before; latencies in seconds."""

    line: int
    end: float
    counts: dict[str, int]
    latencies: dict[str, float]


def recognises(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of this format."""
    return any(_HEAD.match(line) for line in head)


def read(lines: Iterable[str]) -> Reading:
    """Read scylla-bench's output. Raises BadLineError for a line that cannot be read, and where totals differ."""
    found: list[_Interval] = []
    totals: dict[str, tuple[int, int]] = {}
    names: list[str] = []
    for number, line in enumerate(lines, start=1):
        if head := _HEAD.match(line):
            names = head["latencies"].split()
            if names != list(_LATENCIES):
                what = f"is a header with {' '.join(names) or 'no latencies'} in place of {' '.join(_LATENCIES)}"
                raise BadLineError(number, f"{what}; run scylla-bench without -measure-latency=false")
        elif total := _TOTAL.match(line):
            totals[total["what"]] = (number, int(total["count"]))
        elif line.startswith("Results"):
            names = []
        elif names and _BEGINNING.match(line):
            found.append(_interval(number, line))
    _fold_last(found)
    if len(found) < 2:
        return Reading([])
    usual = median(later.end - earlier.end for earlier, later in pairwise(found))
    starts = [found[0].end - usual, *(each.end for each in found[:-1])]
    said = [
        Progress(each.line, each.end, _numbers(each, each.end - start))
        for start, each in zip(starts, found, strict=True)
    ]
    rows = rows_of_intervals(said)
    for what, name in (("ops", "operations"), ("rows", "rows"), ("errors", "errors")):
        counts = [each.counts[name] for each in found]
        if what in totals:
            require_total(totals[what][0], name, sum(counts), totals[what][1], 2 * max(counts))
    return Reading(rows, operations=sum(each.counts["operations"] for each in found))


def _interval(number: int, line: str) -> _Interval:
    if (read := _LINE.match(line)) is None:
        raise BadLineError(number, f"is a line of a second that cannot be read: {line[:80]!r}; {_REMEDY}")
    counts = {name: int(read[name]) for name in ("operations", "rows", "errors")}
    values = [go_seconds(text) for text in read["latencies"].split()]
    return _Interval(number, go_seconds(read["time"]), counts, dict(zip(_LATENCIES.values(), values, strict=True)))


def _fold_last(found: list[_Interval]) -> None:
    """Add the last line to the one before it, where both have the same time: what ended while the run was stopped."""
    if len(found) >= 2 and found[-1].end == found[-2].end:
        last, kept = found.pop(), found[-1]
        counts = {name: count + last.counts[name] for name, count in kept.counts.items()}
        latencies = kept.latencies | {"max": max(kept.latencies["max"], last.latencies["max"])}
        found[-1] = _Interval(kept.line, kept.end, counts, latencies)


def _numbers(each: _Interval, seconds: float) -> dict[str, float]:
    """Figures of a line, `seconds` after the one before. Without an operation all latencies are 0 but the longest,
    which is the least one that a histogram has."""
    rate = each.counts["operations"] / seconds if seconds > 0 else 0.0
    latencies = each.latencies if each.latencies["mean"] else {}
    return known({RATE_COLUMN: rate, ERRORS_COLUMN: float(each.counts["errors"])} | latencies)
