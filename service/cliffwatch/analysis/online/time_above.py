"""Time above healthy: excursions that return, whatever their shape, counted against the run's own first hours.

The other detectors judge onsets against a level that follows the run, and learn from what the run came back from, so
trouble that comes and goes can teach them to wait. Here the reference is fixed: the declared baseline phase, or the
second to fourth hour. A window is high above the reference's own highest windows and a margin. Of all windows, a small
share may be high; what is high beyond that adds up (a cumulative sum, Page 1954). So more trouble adds to the sum, and
single slow windows, a restart or a pause do not reach the limit.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median

import numpy as np

from cliffwatch.analysis.finding import Baseline, Finding, FindingKind, Recurrence, Role, Sample, Series, Size
from cliffwatch.analysis.online.levels import RollingLevel
from cliffwatch.analysis.preprocessing import CoarseClock
from cliffwatch.analysis.primary_series import primary_series, rank_of
from cliffwatch.analysis.run_arrays import Array
from cliffwatch.analysis.sizes import band
from cliffwatch.analysis.span_lengths import FAST, HOUR, log_ratio
from cliffwatch.analysis.thresholds import (
    ABOVE_MARGIN,
    ABOVE_OVER_DISTANCES,
    ABOVE_RATIO,
    ABOVE_SHARE,
    ABOVE_TICKS,
    ABOVE_WINDOWS,
    ABSOLUTE_SHARE,
    LEAVE_PART,
    LONE_CONFIDENCE,
    MORE_LOAD,
    OUTLAST,
    TRAIN_OVER_WINDOWS,
)
from cliffwatch.model.phase import Phase

#: Windows of a median, which hides single slow windows; the most windows of a declared reference (8 h); and the
#: quantile that is the reference's highest level, without a freak.
_MEDIAN_WINDOWS, _REFERENCE_MOST, _REFERENCE_HIGHEST = 5, 8 * HOUR, 0.99
#: Length of a window of which spans are as long as elsewhere. Of longer ones they have fewer windows, since hours
#: matter here: a reference of 1,080 windows of a minute would last for most of a day. The least windows of an hour, of
#: a reference, of a lull, and above healthy.
_WINDOW_SECONDS = 10.0
_HOUR_LEAST, _REFERENCE_LEAST, _LULL_LEAST, _ABOVE_LEAST = 12, 36, 3, 12
#: Hours of a reference that is not declared.
_REFERENCE_HOURS = 3
#: Windows whose median is the usual load, the fewest for one, and the number of last excursions that are described.
_LOAD_WINDOWS, _LOAD_LEAST, _KEPT = 2 * HOUR, 30, 200


@dataclass(frozen=True, slots=True)
class _Spans:
    """Lengths in windows of `window_seconds`: of an hour; of a reference that is not declared (3 h); of a lull that
    ends an excursion; of what is above healthy when excursions recur."""

    hour: int
    reference: int
    lull: int
    above: int

    @classmethod
    def of(cls, window_seconds: float) -> "_Spans":
        def span(windows: int, least: int) -> int:
            return min(windows, max(least, round(windows * _WINDOW_SECONDS / window_seconds)))

        return cls(
            span(HOUR, _HOUR_LEAST),
            span(_REFERENCE_HOURS * HOUR, _REFERENCE_LEAST),
            span(FAST, _LULL_LEAST),
            span(ABOVE_WINDOWS, _ABOVE_LEAST),
        )


class TimeAbove:
    """Detector of recurring excursions. `series`, `window_seconds`: of the samples. `notices`: known before the first
    one."""

    def __init__(self, series: Sequence[Series], window_seconds: float) -> None:
        spans = _Spans.of(window_seconds)
        known = {one.name: one for one in series}
        primary = sorted((known[name] for name in primary_series(series)), key=rank_of)
        self._watched = [_Watched(one.name, spans) for one in primary if one.role is Role.LATENCY]
        self._reported: str | None = None
        self._rate_name = next((one.name for one in series if one.role is Role.RATE), None)
        self._rate = RollingLevel(_LOAD_WINDOWS, _LOAD_LEAST)

    def feed(self, sample: Sample, is_judged: bool) -> list[Finding]:
        """Add a sample; returns a new finding, and one that is over."""
        if not is_judged:
            return []
        rate = None if self._rate_name is None else sample.values.get(self._rate_name)
        usual = self._rate.quantile(0.5)
        if rate:
            self._rate.add(rate)
        if rate is not None and usual is not None and rate > MORE_LOAD * usual:
            return []
        ended = [finding for each in self._watched if (finding := each.follow(sample)) is not None]
        found = [finding for finding in ended if finding.series == self._reported]
        if found:
            self._reported = None
        if self._reported is None and (begun := next((each for each in self._watched if each.is_raised), None)):
            # Operations that are slow together are one finding, of the one that a client waits for first.
            begun.detected, self._reported = sample.end, begun.name
            return [*found, *self.active]
        return found

    @property
    def active(self) -> list[Finding]:
        """Active finding, with its current size; empty without one."""
        raised = [each for each in self._watched if each.is_raised]
        others = tuple(each.name for each in raised if each.name != self._reported)
        return [replace(each.finding(), corroborated_by=others) for each in raised if each.name == self._reported]


@dataclass(slots=True)
class _Excursion:
    """Consecutive high windows, with short lulls between them: start and end in seconds, the number of its first
    window, how many are high, the sum of their levels, and in how many windows the level had not come back."""

    start: float
    end: float
    first: int
    windows: int = 0
    levels: float = 0.0
    up: int = 0


@dataclass(slots=True)
class _Sum:
    """Cumulative sum of the windows above `threshold`, with the excursions since it was last zero, and the single rises
    in them. `longest` is the longest excursion that was high for most of its time: a change of its own."""

    threshold: float
    spans: _Spans
    total: float = 0.0
    windows: int = 0
    times: int = 0
    rise_times: int = 0
    longest: int = 0
    onset: float = 0.0
    last_high: int = 0
    has_come_back: bool = False
    worst: float = -math.inf
    excursions: deque[_Excursion] = field(default_factory=lambda: deque(maxlen=_KEPT))
    rises: deque[_Excursion] = field(default_factory=lambda: deque(maxlen=_KEPT))

    def follow(self, start: float, end: float, level: float) -> None:
        """Add a window of this `level` (a logarithm)."""
        self.windows += 1
        was_zero, is_high = self.total == 0.0, level > self.threshold
        self.total = max(0.0, self.total + is_high - ABOVE_SHARE)
        if not is_high:
            self.has_come_back = self.has_come_back or level < LEAVE_PART * self.threshold
            if not self.has_come_back and self.excursions:
                self.excursions[-1].up += 1
            return
        if was_zero:
            self.onset, self.worst, self.times, self.rise_times, self.longest = start, level, 0, 0, 0
            self.excursions.clear()
            self.rises.clear()
        # A level that wavers about the threshold, as a drift does that passes it, has not come back in between.
        is_anew = was_zero or self.has_come_back
        if was_zero or (is_anew and self.windows - self.last_high > self.spans.lull):
            self.times += 1
            self.excursions.append(_Excursion(start, end, self.windows))
        if is_anew:
            self.rise_times += 1
            self.rises.append(_Excursion(start, end, self.windows))
        self.last_high, self.has_come_back = self.windows, False
        for each in (self.excursions[-1], self.rises[-1]):
            each.end, each.windows, each.levels = end, each.windows + 1, each.levels + level
        last = self.excursions[-1]
        last.up += 1
        if last.up >= ABSOLUTE_SHARE * (self.windows - last.first + 1):
            self.longest = max(self.longest, last.windows)
        self.worst = max(self.worst, level)

    @property
    def is_recurring(self) -> bool:
        """Whether enough time was above, besides the longest excursion, which is a change of its own."""
        return self.rise_times > 1 and self.total - self.longest >= self.spans.above

    @property
    def _returns(self) -> tuple[int, deque[_Excursion]]:
        """Number of what recurs, and the last of them: excursions, or where one flickers, its rises."""
        return (self.times, self.excursions) if self.times > 1 else (self.rise_times, self.rises)

    @property
    def is_over(self) -> bool:
        """Whether no excursion came for long after the last one: several times their longest distance."""
        widest = max(after.first - before.first for before, after in pairwise(self._returns[1]))
        return self.windows - self.last_high > max(TRAIN_OVER_WINDOWS, ABOVE_OVER_DISTANCES * widest)

    def recurrence(self) -> Recurrence:
        times, returns = self._returns
        spacings = [after.start - before.start for before, after in pairwise(returns)]
        return Recurrence(
            times,
            median(one.end - one.start for one in returns),
            median(spacings),
            min(spacings),
            max(spacings),
            is_from_start=False,
            last=returns[-1].start,
        )

    def level(self) -> float:
        """Median over what recurs of each one's mean level (a logarithm)."""
        return median(one.levels / one.windows for one in self._returns[1])


class _Reference:
    """Windows that a run is compared with: of its declared baseline phase, or else of its second to fourth hour."""

    def __init__(self, spans: _Spans) -> None:
        self.levels: list[float] = []
        self._spans = spans
        self.start = self.end = 0.0
        self._band: tuple[float, float] | None = None
        self._windows = 0
        self._is_declared = False

    def takes(self, sample: Sample, level: float) -> bool:
        """Add a window; False for the first one after the reference is complete, which is none of it."""
        is_baseline = sample.phase == Phase.BASELINE
        if self._is_declared and not is_baseline and len(self.levels) >= FAST:
            return False
        self._windows += 1
        if is_baseline and not self._is_declared:
            self._is_declared, self.levels = True, []
        elif not self._is_declared:
            if len(self.levels) == self._spans.reference:
                return False
            if self._windows <= self._spans.hour:
                return True
        if len(self.levels) < _REFERENCE_MOST:
            self.start = self.start if self.levels else sample.start
            self.end = sample.end
            self.levels.append(level)
        return True

    def baseline(self, series: str, healthy: float) -> Baseline:
        """Baseline at the level `healthy` (a logarithm): of a run that improved, with the reference's band below it."""
        if self._band is None:
            self._band = band(self.levels)
        part = math.exp(healthy - median(self.levels))
        low, high = self._band
        return Baseline(series, math.exp(healthy), self.start, self.end, low * part, high * part)

    def thresholds(self, healthy: float) -> tuple[float, float]:
        """Heights over `healthy` above which a window, and a median of a few windows, are high (logarithms)."""
        levels = np.array(self.levels)
        highest = [float(np.quantile(each, _REFERENCE_HIGHEST)) - healthy for each in (levels, _medians(levels))]
        single, middle = (max(log_ratio(ABOVE_RATIO), each + log_ratio(ABOVE_MARGIN)) for each in highest)
        return single, middle

    def longest(self, healthy: float) -> int:
        """Most windows in a row whose median of a few is high by `ABOVE_RATIO` alone, as in the run's compactions."""
        high = _medians(np.array(self.levels)) - healthy > log_ratio(ABOVE_RATIO)
        edges = np.flatnonzero(np.diff(np.concatenate(([False], high, [False])))).reshape(-1, 2)
        return int(max((after - first for first, after in edges), default=0))


def _medians(levels: Array) -> Array:
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(levels, _MEDIAN_WINDOWS), axis=1))


class _Watched:
    """State of one series: its reference, then a sum each of single windows, of medians of a few, and of medians in
    excursions that are no higher than the reference's own but outlast all of them."""

    def __init__(self, name: str, spans: _Spans) -> None:
        self.name = name
        self.detected = 0.0
        self._reference = _Reference(spans)
        self._spans = spans
        self._clock = CoarseClock()
        self._windows = 0
        self._healthy = 0.0
        self._hour: list[float] = []
        self._last: deque[float] = deque(maxlen=_MEDIAN_WINDOWS)
        self._sums: tuple[_Sum, ...] = ()
        #: Windows in a row that are high, and how many of them the run's own excursions may last.
        self._high = self._usual = 0
        self._raised: _Sum | None = None

    def follow(self, sample: Sample) -> Finding | None:
        value = sample.values.get(self.name, 0.0)
        if not 0 < value < math.inf:
            return None
        self._windows += 1
        level = math.log(self._clock.spread(value, self._windows))
        if not self._sums:
            if self._reference.takes(sample, level):
                return None
            self._healthy = median(self._reference.levels)
            thresholds = (*self._reference.thresholds(self._healthy), log_ratio(ABOVE_RATIO))
            self._sums = tuple(_Sum(each, self._spans) for each in thresholds)
            self._usual = round(OUTLAST * self._reference.longest(self._healthy)) + FAST
        self._improve(level)
        self._last.append(level)
        middle = sorted(self._last)[len(self._last) // 2]
        # A coarse clock's next tick is no higher level.
        within_ticks = math.log1p(ABOVE_TICKS * self._clock.tick / math.exp(self._healthy))
        heights = [level - self._healthy, middle - self._healthy]
        self._high = self._high + 1 if heights[1] > max(log_ratio(ABOVE_RATIO), within_ticks) else 0
        outlasting = heights[1] if self._high > self._usual else min(heights[1], log_ratio(ABOVE_RATIO))
        for one, height in zip(self._sums, (*heights, outlasting), strict=True):
            one.follow(sample.start, sample.end, height if height > within_ticks else min(height, one.threshold))
        return self._ended()

    def _improve(self, level: float) -> None:
        """Lower the healthy level to the median of an hour that was lower."""
        self._hour.append(level)
        if len(self._hour) == self._spans.hour:
            self._healthy = min(self._healthy, median(self._hour))
            self._hour = []

    @property
    def is_raised(self) -> bool:
        return self._raised is not None

    def _ended(self) -> Finding | None:
        """Finding that is over with this window; begins one where a sum has reached its limit."""
        if self._raised is None:
            self._raised = next((one for one in self._sums if one.is_recurring), None)
            return None
        if self._raised.total > 0.0 and not self._raised.is_over:
            return None
        ended, self._raised = replace(self.finding(), until=self._raised.excursions[-1].end), None
        for one in self._sums:
            one.total = 0.0
        return ended

    def finding(self) -> Finding:
        """The finding that was raised, with its current size."""
        assert self._raised is not None, "only called while it lasts"
        baseline = self._reference.baseline(self.name, self._healthy)
        level, worst = (math.exp(self._healthy + each) for each in (self._raised.level(), self._raised.worst))
        size = Size(baseline, level, worst)
        return Finding(
            FindingKind.RECURRING,
            onset=self._raised.onset,
            series=self.name,
            baseline=baseline.level,
            level=level,
            ratio=size.ratio,
            confidence=LONE_CONFIDENCE,
            detected=self.detected,
            size=size,
            recurrence=self._raised.recurrence(),
        )
