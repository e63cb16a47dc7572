"""Size of a change: baseline, level, worst and ratio, by one definition for everything that states them.

A live finding, the metrics that its alert quotes, the report with its charts and `cliffwatch analyze` all use these
figures, so that they are the same everywhere for the same moment. All are computed from the quantile that each window
measured:

    baseline   the median window of the baseline phase (of a long one, of its lowest hour); in a run that declares none,
               the mean of the medians of its three lowest hours after the first; and while a run has neither, the
               median window of the last three hours before the onset; without what follows a rise by `BASELINE_ROSE`
               that lasted to the end of these windows
    band       the 5th to the 95th percentile of those windows: where nine of ten healthy windows are
    level      the median of the first `LEVEL_WINDOWS` windows since the onset; of a drift, of the last hour of windows;
               of spikes, of their peaks
    worst      the highest median of `FAST` windows in a row since the onset; of spikes, the highest peak
    ratio      level / baseline

While a change is younger than `LEVEL_WINDOWS` its level is the median of the windows so far, and `worst` may rise for
as long as it lasts. Levels in this module are natural logarithms; those in a `Size` are in the series' unit.
"""

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median

import numpy as np
from numpy.typing import NDArray

from cliffwatch.analysis.finding import SUDDEN, Baseline, Finding, FindingKind, Series, Size
from cliffwatch.analysis.primary_series import rank_of
from cliffwatch.analysis.span_lengths import BLOCK, FAST, HOUR
from cliffwatch.analysis.thresholds import (
    AFFECTED_FROM,
    BASELINE_APART,
    BASELINE_LEAST,
    BASELINE_ROSE,
    BASELINE_WINDOWS,
)
from cliffwatch.model.part_names import split_part

#: Windows since the onset whose median is the level that a change has reached (10 min).
LEVEL_WINDOWS = 60
#: Windows before an onset that stand for the baseline of a run that has none yet (3 h).
RECENT_WINDOWS = 3 * HOUR
#: Quantiles that bound the band of the baseline's windows.
_BAND = (0.05, 0.95)
#: Last peaks of spikes, whose median is the level.
_PEAKS = 60


def band(levels: Sequence[float] | NDArray[np.float64]) -> tuple[float, float]:
    """Band of these windows, in the series' unit: nine of ten lie in it. `levels` are logarithms."""
    low, high = np.quantile(np.array(levels), _BAND)
    return math.exp(float(low)), math.exp(float(high))


def baseline_of(
    series: str, level: float, levels: Sequence[float] | NDArray[np.float64], start: float, end: float
) -> Baseline:
    """Baseline of this `level`, with the band of its windows' `levels` (all logarithms)."""
    low, high = band(levels)
    return Baseline(series, math.exp(level), start, end, low, high)


def before_rise(levels: NDArray[np.float64]) -> int:
    """Number of the first `levels` (logarithms) that precede every rise by `BASELINE_ROSE` or more that lasted to their
    end; all of them where there is none, or where they are too few to distinguish it from noise.

    A phase that was declared healthy may contain the cliff itself, and then most of it is not what healthy is.
    """
    count = len(levels)
    if count < BASELINE_WINDOWS:
        return count
    while (found := _last_rise(levels[:count])) is not None:
        count = found
    return count


def _last_rise(levels: NDArray[np.float64]) -> int | None:
    """Place of the split of `levels` into two parts that fits best (least squares); None where too few levels are left
    on a side of it, or where it is no rise by `BASELINE_ROSE`."""
    count = len(levels)
    if count < BASELINE_LEAST + BLOCK:
        return None
    sizes = np.arange(BASELINE_LEAST, count - BLOCK + 1)
    left = np.cumsum(levels - levels.mean())[BASELINE_LEAST - 1 : count - BLOCK]
    place = int(sizes[np.argmax(left**2 / sizes + left**2 / (count - sizes))])
    before, since = levels[:place], levels[place:]
    low, high = float(np.median(before)), float(np.median(since))
    between = (low + high) / 2
    is_apart = np.mean(before < between) >= BASELINE_APART[0] and np.mean(since > between) >= BASELINE_APART[1]
    return place if high - low >= math.log(BASELINE_ROSE) and is_apart else None


def recent_baseline(series: str, before: Sequence[tuple[float, float]]) -> Baseline | None:
    """Baseline from the windows before an onset, as (start, level), for a run that has none yet; None without any."""
    recent = list(before)[-RECENT_WINDOWS:]
    if not recent:
        return None
    recent = recent[: before_rise(np.array([level for _, level in recent]))]
    levels = [level for _, level in recent]
    return baseline_of(series, median(levels), levels, recent[0][0], recent[-1][0])


class Rise:
    """Rise of one series since an onset: its first, last and worst level. Memory is bounded."""

    def __init__(self, baseline: Baseline, kind: FindingKind) -> None:
        self._baseline = baseline
        self._first: list[float] = []
        self._last: deque[float] = deque(maxlen=FAST)
        self._hour: deque[float] | None = deque(maxlen=HOUR) if kind is FindingKind.DRIFT else None
        self._peaks: deque[float] | None = deque(maxlen=_PEAKS) if kind is FindingKind.SPIKES else None
        self._worst = -math.inf

    def add(self, level: float) -> None:
        """Add a window's level (a logarithm); for spikes, a peak."""
        if self._peaks is not None:
            self._peaks.append(level)
            self._worst = max(self._worst, level)
            return
        if self._hour is not None:
            self._hour.append(level)
        if len(self._first) < LEVEL_WINDOWS:
            self._first.append(level)
        self._last.append(level)
        if len(self._last) == FAST:
            self._worst = max(self._worst, median(self._last))

    def size(self) -> Size | None:
        """Size of the rise; None before anything was measured."""
        values = self._first
        if self._peaks is not None or self._hour is not None:
            values = list(self._peaks or self._hour or ())
        if not values:
            return None
        level = median(values)
        return Size(self._baseline, math.exp(level), math.exp(max(self._worst, level)))


class Sizing:
    """The sizes of one finding: of its own series, and of the others that it affects."""

    def __init__(self, kind: FindingKind) -> None:
        self.kind = kind
        self.rises: dict[str, Rise] = {}

    def follow(self, baseline: Baseline, since: Iterable[float]) -> None:
        """Add a series, with its levels since the onset (logarithms)."""
        if baseline.series not in self.rises:
            rise = self.rises[baseline.series] = Rise(baseline, self.kind)
            for level in since:
                rise.add(level)

    def add(self, present: Mapping[str, float]) -> None:
        """Add a window: its levels (logarithms) by series name."""
        for name, rise in self.rises.items():
            if name in present:
                rise.add(present[name])

    def of(self, finding: Finding) -> Finding:
        """Finding with its current sizes."""
        return sized(finding, {name: rise.size() for name, rise in self.rises.items()})


def restated(finding: Finding, known: Mapping[str, Series]) -> Finding:
    """Sudden finding, restated for the affected operation that ranks first (what a client waits for before its parts).
    `known`: series by name."""
    sizes = {size.series: size for size in (finding.size, *finding.affected) if size is not None}
    if finding.kind not in SUDDEN or finding.series not in sizes or known[finding.series].operation is None:
        return finding
    return about(finding, reported_series(finding.series, sizes, known))


def about(finding: Finding, subject: str) -> Finding:
    """Finding restated for another of its series (`subject`); unchanged where `subject` has no size."""
    sizes = {size.series: size for size in (finding.size, *finding.affected) if size is not None}
    if subject not in sizes:
        return finding
    others = dict.fromkeys([finding.series, *finding.corroborated_by])
    others.pop(subject, None)
    return sized(replace(finding, series=subject, corroborated_by=tuple(others)), sizes)


def reported_series(series: str, sizes: Mapping[str, Size | None], known: Mapping[str, Series]) -> str:
    """Name of the series that a finding reports: the first by rank of its own series and the affected ones. Where that
    is of all parts of a run together, and one part alone is affected, it is that part's."""
    affected = [name for name, size in sizes.items() if size is not None and is_affected(size)]
    first = min([series, *affected], key=lambda name: rank_of(known[name]))
    operation = known[first].operation
    others = {one.operation for one in known.values() if one.operation is not None and one.operation != operation}
    parts = {name for name in others if split_part(name)[1] == operation}
    of_parts = [name for name in affected if known[name].operation in parts]
    return of_parts[0] if len(parts) > 1 and len(of_parts) == 1 else first


def is_affected(size: Size) -> bool:
    """Whether an operation is affected by a change: by a large enough ratio, to a level above its baseline's band."""
    return size.ratio >= AFFECTED_FROM and size.level > size.baseline.high


def rose(before: Sequence[float], since: Sequence[float]) -> bool:
    """Whether a series rose at an onset, by the windows just before it and since (logarithms).

    Online detection and the analysis of the whole run share it, so that the same series join a finding live and in the
    report.
    """
    before, since = before[-LEVEL_WINDOWS:], since[:LEVEL_WINDOWS]
    if len(before) < FAST or len(since) < FAST:
        return False
    return median(since) - median(before) > math.log(AFFECTED_FROM)


def sized(finding: Finding, sizes: Mapping[str, Size | None]) -> Finding:
    """Finding with these sizes, by series name; unchanged where its own series has no size."""
    own = sizes.get(finding.series)
    if own is None:
        return finding
    others = tuple(
        size for name, size in sizes.items() if name != finding.series and size is not None and is_affected(size)
    )
    names = dict.fromkeys([*finding.corroborated_by, *(size.series for size in others)])
    return replace(
        finding,
        baseline=own.baseline.level,
        level=own.level,
        ratio=own.ratio,
        size=own,
        affected=others,
        corroborated_by=tuple(names),
    )
