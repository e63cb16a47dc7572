"""Read HdrHistogram interval logs (`.hlog`), versions 1.2 and 1.3, with or without tags, of one or more generators.

Lines are `Tag=NAME,start,length,longest,HISTFAAA…`. A log does not state the unit of its latencies. `longest` is in
milliseconds by HdrHistogram's own convention, so its ratio to the histogram's longest latency shows the unit.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from cliffwatch.analysis.table import END_COLUMN, Row
from cliffwatch.base.histogram import HIGHEST_NANOSECONDS, LOWEST_NANOSECONDS, QUANTILES, Histogram
from cliffwatch.base.units import format_latency
from cliffwatch.labs.outputs.interval_times import Interval, Intervals, read_intervals
from cliffwatch.labs.outputs.rows import RATE_COLUMN, BadLineError, Reading, known, quantile_column

#: Units by the ratio of a histogram's longest latency to the milliseconds that its line states.
_UNITS = {1e6: (1e-9, "nanoseconds"), 1e3: (1e-6, "microseconds")}
#: The stated longest latency may differ from the histogram's by this share: more is said, much more is refused. A
#: histogram of two digits is precise to 1 %, of one digit to 6 %.
_SAID, _REFUSED = 0.02, 0.1
#: Rounding of the stated longest latency, which has three decimals.
_ROUNDING = 0.0011
#: A median below this makes an inferred unit doubtful: no disk and no network answers within it.
_DOUBTFUL_SECONDS = 10e-6
#: Beginning of a log, and of the payload of each of its lines.
_TITLE, _PAYLOAD = "#[Histogram log format version", ",HISTFAAA"
_ASK = "say what its latencies are in: `--latency-unit ns`, `us`, `ms` or `s`"


@dataclass(slots=True)
class _Group:
    """Intervals of the same time: one of each tag of each log."""

    start: float
    end: float = 0.0
    intervals: list[Interval] = field(default_factory=list)


class _Longest:
    """Comparison of the longest latency that a line states with that of its histogram."""

    def __init__(self, ratio: float | None, unit_seconds: float) -> None:
        self._ratio = ratio
        self._unit_seconds = unit_seconds
        self._worst = (0.0, "")

    def check(self, interval: Interval, histogram: Histogram) -> None:
        """Raise BadLineError where the two cannot be of the same interval."""
        found = histogram.max_seconds or 0.0
        is_out_of_range = not 2 * LOWEST_NANOSECONDS <= found * 1e9 < HIGHEST_NANOSECONDS * 0.99
        if self._ratio is None or not interval.longest or is_out_of_range:
            return
        stated = interval.longest * self._ratio * self._unit_seconds
        slack = _ROUNDING * self._ratio * self._unit_seconds
        apart = max(0.0, abs(found - stated) - slack) / found
        words = f"states {format_latency(stated)} as its longest latency, and its histogram has {format_latency(found)}"
        if apart > _REFUSED:
            raise BadLineError(
                interval.line, f"{words}: more than {100 * _REFUSED:g} % apart, so that one of them is wrong"
            )
        if apart > max(_SAID, self._worst[0]):
            self._worst = (apart, f"Line {interval.line} {words} ({100 * apart:.1f} % apart).")

    @property
    def remark(self) -> str:
        """Sentence on the line where the two differ most; empty where they agree."""
        return self._worst[1]


def recognises(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of this format."""
    return any(line.startswith(_TITLE) or _PAYLOAD in line for line in head)


def read(lines: Iterable[str], unit_seconds: float | None) -> Reading:
    """Read an interval log. `unit_seconds` is the unit of its latencies; None: inferred from the longest latency.
    Raises BadLineError."""
    intervals = read_intervals(lines)
    if not intervals.found:
        return Reading([])
    remarks = list(intervals.remarks)
    is_inferred, ratio = unit_seconds is None, _ratio(intervals.found, unit_seconds or 1e-9)
    if unit_seconds is None:
        unit_seconds, name = _unit_of(ratio)
        remarks.append(f"A log has no unit: its latencies are taken for {name} (`--latency-unit` says otherwise).")
    longest = _Longest(ratio, unit_seconds)
    zero = intervals.found[0].start
    rows: list[Row] = []
    operations = 0
    medians: list[float] = []
    for group in _groups(intervals):
        numbers = {END_COLUMN: group.end - zero, RATE_COLUMN: 0.0}
        merged: dict[str, Histogram] = {}
        for each in group.intervals:
            histogram = _histogram(each, unit_seconds)
            longest.check(each, histogram)
            operations += histogram.count
            numbers[RATE_COLUMN] += histogram.count / each.length
            merged.setdefault(each.tag, Histogram()).merge(histogram)
        for tag, histogram in merged.items():
            latencies = _latencies(histogram)
            medians += [latencies["p50"]] if "p50" in latencies else []
            numbers |= {f"{tag}.{name}" if tag else name: value for name, value in latencies.items()}
        rows.append(Row(group.start - zero, {}, numbers))
    if is_inferred and medians and median(medians) < _DOUBTFUL_SECONDS:
        doubt = f"has no unit, and half of its latencies would be below {format_latency(_DOUBTFUL_SECONDS)} in {name}"
        raise BadLineError(0, f"{doubt}; {_ASK}")
    return Reading(rows, operations=operations, remark=" ".join(filter(None, [*remarks, longest.remark])))


def _groups(intervals: Intervals) -> Iterator[_Group]:
    """Put intervals of the same time together; groups do not overlap."""
    group: _Group | None = None
    members: set[tuple[int, str]] = set()
    for each in intervals.found:
        of = (each.section, each.tag)
        if group is not None and (of in members or each.start - group.start > intervals.usual_seconds / 2):
            group.end = min(group.end, each.start)
            yield group
            group = None
        if group is None:
            group, members = _Group(each.start), set()
        members.add(of)
        group.end = max(group.end, each.start + each.length)
        group.intervals.append(each)
    if group is not None:
        yield group


def _histogram(interval: Interval, unit_seconds: float) -> Histogram:
    try:
        return Histogram.decode(interval.payload, round(unit_seconds * 1e9))
    except ValueError as error:
        raise BadLineError(interval.line, str(error)) from error


def _ratio(intervals: list[Interval], unit_seconds: float) -> float | None:
    """Ratio of the longest latency of all, in `unit_seconds`, to what its line states; a power of ten where it is near
    one. None where no line states any."""
    each = max(intervals, key=lambda one: one.longest)
    longest = _histogram(each, unit_seconds).max_seconds
    if not longest or not each.longest:
        return None
    ratio = longest / unit_seconds / each.longest
    return next((power for power in (*_UNITS, 1.0) if abs(ratio / power - 1) <= _REFUSED), ratio)


def _unit_of(ratio: float | None) -> tuple[float, str]:
    """Unit of the log's latencies in seconds, and its name. Raises BadLineError where the log does not show it."""
    if ratio is None or ratio == 1.0:
        raise BadLineError(0, f"does not show the unit of its latencies; {_ASK}")
    if ratio not in _UNITS:
        what = f"states longest latencies that its histograms have {ratio:.3g} times as large, which fits no unit"
        raise BadLineError(0, f"{what}; {_ASK}")
    return _UNITS[ratio]


def _latencies(histogram: Histogram) -> dict[str, float]:
    if not histogram.count:
        return {}
    values = {
        quantile_column(100 * quantile): value
        for quantile, value in zip(QUANTILES, histogram.percentiles_seconds(), strict=True)
        if value is not None
    }
    mean = histogram.sum_seconds() / histogram.count
    return known({**values, "mean": mean, "max": histogram.max_seconds or 0.0})
