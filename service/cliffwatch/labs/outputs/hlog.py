"""Read HdrHistogram interval logs (`.hlog`), versions 1.2 and 1.3, with or without tags.

Lines are `Tag=NAME,start,length,longest,HISTFAAA…`. A log does not state the unit of its latencies. `longest` is in
milliseconds by HdrHistogram's own convention, so its ratio to the histogram's longest latency shows the unit.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from cliffwatch.analysis.table import END_COLUMN, Row
from cliffwatch.base.histogram import QUANTILES, Histogram
from cliffwatch.labs.outputs.rows import NUMBER, RATE_COLUMN, BadLineError, Reading, known, quantile_column

_LINE = re.compile(
    rf"(?:Tag=(?P<tag>[^,]*),)?(?P<start>{NUMBER}),(?P<length>{NUMBER}),(?P<longest>{NUMBER}),(?P<payload>HIST\S+)"
)
_UNIT_NAMES = {1.0: "seconds", 1e-3: "milliseconds", 1e-6: "microseconds", 1e-9: "nanoseconds"}


@dataclass(frozen=True, slots=True)
class _Interval:
    tag: str
    start: float
    length: float
    longest: float
    payload: str
    line: int


def read(lines: Iterable[str], unit_seconds: float | None) -> Reading:
    """Read an interval log. `unit_seconds` is the unit of its latencies; None: `_unit_of` infers it from the longest
    latency. Raises BadLineError."""
    intervals = [each for number, line in enumerate(lines, start=1) if (each := _interval(number, line)) is not None]
    if not intervals:
        return Reading([])
    remark = ""
    if unit_seconds is None:
        unit_seconds = _unit_of(intervals)
        name = _UNIT_NAMES[unit_seconds]
        remark = f"A log has no unit: its latencies are taken for {name} (`--latency-unit` says otherwise)."
    intervals.sort(key=lambda each: each.start)
    usual = median(each.length for each in intervals)
    rows: list[Row] = []
    tags: set[str] = set()
    operations = 0
    for each in intervals:
        if not rows or each.tag in tags or each.start - intervals[0].start - rows[-1].at > usual / 2:
            tags = set()
            start = each.start - intervals[0].start
            rows.append(Row(start, {}, {END_COLUMN: start + each.length, RATE_COLUMN: 0.0}))
        tags.add(each.tag)
        histogram = _histogram(each, unit_seconds)
        operations += histogram.count
        rows[-1].numbers[RATE_COLUMN] += histogram.count / each.length
        rows[-1].numbers |= _latencies(each.tag, histogram)
    return Reading(rows, operations=operations, remark=remark)


def _interval(number: int, line: str) -> _Interval | None:
    if not line.strip() or line.startswith(("#", '"')):
        return None
    found = _LINE.match(line.strip())
    if found is None:
        raise BadLineError(number, f"{line.strip()[:40]!r} is not `start,length,longest,HISTFAAA…`")
    start, length, longest = (float(found[name]) for name in ("start", "length", "longest"))
    if not length > 0:
        return None
    return _Interval(found["tag"] or "", start, length, longest, found["payload"], number)


def _histogram(interval: _Interval, unit_seconds: float) -> Histogram:
    try:
        return Histogram.decode(interval.payload, round(unit_seconds * 1e9))
    except ValueError as error:
        raise BadLineError(interval.line, str(error)) from error


def _unit_of(intervals: list[_Interval]) -> float:
    """Infer the unit of the log's latencies, in seconds, from the longest one, which its line has in milliseconds."""
    each = max(intervals, key=lambda one: one.longest)
    longest = _histogram(each, 1e-9).max_seconds
    if not longest or not each.longest:
        return 1e-9
    digits = math.log10(longest * 1e9 / each.longest)
    return min((1e-9, 1e-6, 1e-3), key=lambda unit: abs(digits - math.log10(1e-3 / unit)))


def _latencies(tag: str, histogram: Histogram) -> dict[str, float]:
    prefix = f"{tag}." if tag else ""
    if not histogram.count:
        return {}
    values = {
        quantile_column(100 * quantile): value
        for quantile, value in zip(QUANTILES, histogram.percentiles_seconds(), strict=True)
        if value is not None
    }
    mean = histogram.sum_seconds() / histogram.count
    return known(
        {
            f"{prefix}{name}": value
            for name, value in {**values, "mean": mean, "max": histogram.max_seconds or 0.0}.items()
        }
    )
