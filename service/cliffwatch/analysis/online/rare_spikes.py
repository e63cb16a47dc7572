"""Rare-spike detector: spikes far above all other windows of a run that come too evenly, or too often, for chance.

A drive's own housekeeping, a checkpoint or a flush shows as one slow window every ten minutes or every few hours, and
in a high quantile alone. Such spikes cannot be judged by how often spikes come by chance, since those of the first
hours would count as the run's own past. Instead, a gap distinguishes them: between the lowest of them and the highest
of all other rises; and `chance.py` distinguishes what recurs from single slow windows of a shared machine.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from statistics import median

from cliffwatch.analysis.chance import is_recurrent
from cliffwatch.analysis.finding import Baseline, Finding, FindingKind, Recurrence, Role, Sample, Series, Size
from cliffwatch.analysis.online.levels import RollingLevel
from cliffwatch.analysis.span_lengths import HOUR, log_ratio
from cliffwatch.analysis.thresholds import (
    LOAD_ROSE,
    LONE_CONFIDENCE,
    RARE_CLEAR,
    RARE_FROM_START,
    RARE_GAPS,
    RARE_RATIO,
    RARE_RISE,
    RARE_SHARE,
    SPIKE_WINDOWS,
    TRAIN_OVER_DISTANCES,
    TRAIN_OVER_WINDOWS,
)

#: Quantiles that are judged: the latency of one operation in a hundred, and of one in a thousand.
_QUANTILES = (0.99, 0.999)
#: Windows whose median is the recent level, and the fewest for one.
_LEVEL_WINDOWS, _LEVEL_LEAST = HOUR // 2, 30
#: Windows whose median is the usual load: more than twice those of a burst.
_LOAD_WINDOWS = 2 * HOUR
#: A rise begins at this ratio; heights are counted in bins of the width `_BIN` (logarithms).
_RISE = log_ratio(RARE_RISE)
_BIN = 0.05
_BINS = 400
_LOWEST_BIN = int(log_ratio(RARE_RATIO) / _BIN)
_CLEAR_BINS = int(log_ratio(RARE_CLEAR) / _BIN)
#: Number of last spikes whose heights, lengths and distances are reported.
_KEPT = 200
#: Nine of ten windows lie between these quantiles.
_BAND = (0.05, 0.95)


@dataclass(frozen=True, slots=True)
class _Spike:
    start: float
    end: float
    height: float


class RareSpikes:
    """Rare-spike detector. `series`, `window_seconds`: of the samples. `notices`: known before the first sample."""

    def __init__(self, series: Sequence[Series], window_seconds: float) -> None:
        self._watched = [
            _Watched(one, window_seconds) for one in series if one.role is Role.LATENCY and one.quantile in _QUANTILES
        ]
        self._rate_name = next((one.name for one in series if one.role is Role.RATE), None)
        self._rate = RollingLevel(_LOAD_WINDOWS, _LEVEL_LEAST)
        self._was_idle = False

    def feed(self, sample: Sample, is_judged: bool) -> list[Finding]:
        """Add a sample; returns new findings, and findings that are over: one per operation."""
        rate = None if self._rate_name is None else sample.values.get(self._rate_name)
        # Operations that waited through a stall complete after it, and are part of the stall's finding.
        is_idle, was_idle = rate == 0, self._was_idle
        self._was_idle = is_idle
        usual = self._rate.quantile(0.5)
        has_more_load = rate is not None and usual is not None and rate > LOAD_ROSE * usual
        if rate:
            self._rate.add(rate)
        if not is_judged or is_idle or was_idle or has_more_load:
            for each in self._watched:
                each.leave_out()
            return []
        found = []
        for each in self._watched:
            finding = each.follow(sample)
            if finding is not None and self._is_reported(each, finding):
                found.append(finding)
        return found

    def _is_reported(self, watched: "_Watched", finding: Finding) -> bool:
        """Whether to report a new or ended finding: of the quantiles of one operation, that which shows spikes first
        is."""
        if finding.until is None:
            same = [one for one in self._watched if one.series.operation == watched.series.operation]
            watched.is_reported = not any(one.is_reported for one in same)
            return watched.is_reported
        was_reported, watched.is_reported = watched.is_reported, False
        return was_reported

    @property
    def active(self) -> list[Finding]:
        """Active findings, one for each operation."""
        return [each.active for each in self._watched if each.active is not None and each.is_reported]


def _gap_needed(count: int) -> float:
    """Least gap below `count` spikes that chance does not explain (a logarithm)."""
    return next((log_ratio(gap) for least, gap in RARE_GAPS if count >= least), math.inf)


class _Watched:
    """State of one series, with its spikes of all heights."""

    def __init__(self, series: Series, window_seconds: float) -> None:
        self.series = series
        self.active: Finding | None = None
        self.is_reported = False
        self._window_seconds = window_seconds
        self._level = RollingLevel(_LEVEL_WINDOWS, _LEVEL_LEAST)
        self._windows = 0
        self._begin: float | None = None
        self._bins = [0] * _BINS
        self._open: list[tuple[float, float, float]] = []
        self._spikes: deque[_Spike] = deque(maxlen=_KEPT)
        self._first: dict[int, float] = {}

    def leave_out(self) -> None:
        """Ignore a window, and the rise that it is part of."""
        self._open.clear()

    def follow(self, sample: Sample) -> Finding | None:
        value = sample.values.get(self.series.name, 0.0)
        if value <= 0:
            self._open.clear()
            return None
        self._windows += 1
        self._begin = sample.start if self._begin is None else self._begin
        level, recent = math.log(value), self._level.quantile(0.5)
        self._level.add(level)
        if recent is None:
            return None
        if level - recent > _RISE:
            self._open.append((sample.start, sample.end, level - recent))
            return None
        spikes = self._closed()
        if not spikes:
            return self._over(sample)
        joined = [self._joined(spike, recent, sample) for spike in spikes]
        return next((finding for finding in joined if finding is not None), None)

    def _closed(self) -> list[_Spike]:
        """Spikes of the rise that ended: all of a short one; of a long one, such as a compaction, what stands out."""
        rise, self._open = self._open, []
        if not rise:
            return []
        clear = max(height for _, _, height in rise) - log_ratio(RARE_CLEAR) if len(rise) > SPIKE_WINDOWS else 0.0
        runs = [list(run) for is_high, run in groupby(rise, lambda window: window[2] > clear) if is_high]
        return [
            _Spike(run[0][0], run[-1][1], max(height for _, _, height in run))
            for run in runs
            if len(run) <= SPIKE_WINDOWS
        ]

    def _joined(self, spike: _Spike, recent: float, sample: Sample) -> Finding | None:
        """Count a spike; returns a new finding once enough spikes lie above a gap in the heights."""
        place = min(_BINS - 1, int(spike.height / _BIN))
        self._bins[place] += 1
        self._first.setdefault(place, spike.start)
        if place < _LOWEST_BIN:
            return None
        self._spikes.append(spike)
        least = self._lowest_that_stands_out()
        if least is None or place < least:
            return None
        times = sum(self._bins[least:])
        apart = [one for one in self._spikes if int(one.height / _BIN) >= least]
        windows = sum((one.end - one.start) / self._window_seconds for one in apart) / len(apart) * times
        if windows > RARE_SHARE * self._windows:
            return None
        if self.active is None and not is_recurrent([one.start for one in apart], self._window_seconds):
            return None
        is_new = self.active is None
        onset = min(start for place, start in self._first.items() if place >= least)
        self.active = self._stated(apart, times, recent, onset if self.active is None else self.active.onset, sample)
        return self.active if is_new else None

    def _lowest_that_stands_out(self) -> int | None:
        """Lowest bin of heights with a gap below it, and enough spikes of its height and above; None without one."""
        occupied = [place for place in range(_BINS - 1, -1, -1) if self._bins[place]]
        count, found = 0, None
        for place, below in zip(occupied, [*occupied[1:], 0], strict=True):
            if place < _LOWEST_BIN:
                break
            count += self._bins[place]
            gap, spread = place - below, occupied[0] - place
            if gap * _BIN >= _gap_needed(count) and gap >= min(spread, _CLEAR_BINS):
                found = place
        return found

    def _stated(self, apart: Sequence[_Spike], times: int, recent: float, onset: float, sample: Sample) -> Finding:
        heights = [one.height for one in apart]
        level, worst = math.exp(recent + median(heights)), math.exp(recent + max(heights))
        low, high = (math.exp(self._level.quantile(share) or recent) for share in _BAND)
        baseline = Baseline(self.series.name, math.exp(recent), self._begin or 0.0, sample.end, low, high)
        distances = [after.start - before.start for before, after in pairwise(apart)]
        assert self._begin is not None, "there was a window before"
        recurrence = Recurrence(
            times,
            median(one.end - one.start for one in apart),
            median(distances),
            min(distances),
            max(distances),
            onset - self._begin <= RARE_FROM_START * max(distances),
            last=apart[-1].start,
        )
        detected = sample.end if self.active is None else self.active.detected
        return Finding(
            FindingKind.SPIKES,
            onset=onset,
            series=self.series.name,
            baseline=baseline.level,
            level=level,
            ratio=level / baseline.level,
            confidence=LONE_CONFIDENCE,
            detected=detected,
            size=Size(baseline, level, worst),
            recurrence=recurrence,
        )

    def _over(self, sample: Sample) -> Finding | None:
        if self.active is None or self.active.recurrence is None:
            return None
        last, distance = self._spikes[-1], self.active.recurrence.most_seconds
        quiet = max(TRAIN_OVER_WINDOWS * self._window_seconds, TRAIN_OVER_DISTANCES * distance)
        if sample.end - last.end <= quiet:
            return None
        ended, self.active = replace(self.active, until=last.end), None
        self._bins, self._first = [0] * _BINS, {}
        self._spikes.clear()
        return ended
