"""Detector of stalls (no operation completes for long) and shortfalls (the rate falls, no latency explains it).

Percentiles are of completed operations, and show neither stalls nor shortfalls. Both are detected by the rate: compared
with its own past, it shows how many operations were due, even where no source reports that.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import median

from cliffwatch.analysis.coverage import GAP_TOLERANCE
from cliffwatch.analysis.finding import Finding, FindingKind, LimitedBy, Role, Sample, Series, Undone
from cliffwatch.analysis.online.levels import RollingLevel
from cliffwatch.analysis.span_lengths import FAST, HOUR
from cliffwatch.analysis.thresholds import (
    EARLY_STALL_LONGER,
    LONE_CONFIDENCE,
    RATE_WINDOWS,
    SHORTFALL_OVER,
    SHORTFALL_RATIO,
    SHORTFALL_SECONDS,
    SHORTFALL_WINDOWS,
    SLOWER_RATIO,
    STALL_CONFIDENCE,
    STALL_OPERATIONS,
    STALL_SECONDS,
    STALLS_APART,
)
from cliffwatch.model.phase import Phase


@dataclass(slots=True)
class _Silence:
    """Consecutive windows in which no operation completed. `oldest` is 0 where no operation was outstanding. In
    `doubtful` windows there was a latency beside the rate of 0: a frozen one, or a counter was reset.
    `is_before_load`: no operation had completed before."""

    start: float
    end: float
    windows: int = 0
    doubtful: int = 0
    oldest: float | None = None
    finding: Finding | None = None
    is_before_load: bool = False

    @property
    def seconds(self) -> float:
        return self.end - self.start

    @property
    def may_be_a_reset(self) -> bool:
        """Whether it is one window whose rate is 0 because a counter was reset, not because work stood still."""
        return self.windows == self.doubtful == 1


class WorkJudge:
    """Detector of stalls and shortfalls. `series`: those of the samples, of which the rate and the latencies are used.
    `window_seconds`: length of a sample. `notices`: those that are known before the first sample."""

    def __init__(self, series: Sequence[Series], window_seconds: float) -> None:
        self._rate = next((one.name for one in series if one.role is Role.RATE), None)
        latencies = [one for one in series if one.role is Role.LATENCY]
        self._latencies = [one.name for one in latencies]
        #: Latency of most operations (the lowest quantile), which limits a client that waits for each operation.
        self._usual = min(latencies, key=lambda one: one.quantile or 1.0).name if latencies else None
        self._window_seconds = window_seconds
        self._tolerance = window_seconds * GAP_TOLERANCE
        self._end = -math.inf
        self._silence: _Silence | None = None
        self._rates: deque[float] = deque(maxlen=HOUR)
        self._repeated: Finding | None = None
        self._stalls = 0
        #: Silences from before the rate was known.
        self._early: list[_Silence] = []
        self._shortfall = _Shortfall(max(SHORTFALL_WINDOWS, math.ceil(SHORTFALL_SECONDS / window_seconds)))

    def feed(self, sample: Sample, is_judged: bool) -> list[Finding]:
        """Add a sample; returns new findings, and new versions of earlier ones (same series, kind and onset)."""
        rate = None if self._rate is None else sample.values.get(self._rate)
        is_next = sample.start - self._end <= self._tolerance
        self._end = sample.end
        found: list[Finding] = []
        if self._silence is not None and (rate != 0 or not is_judged or not is_next):
            # A stall before a gap may have ended in the gap.
            found += self._over(self._silence, sample if rate and is_next else None)
        if rate is None or self._rate is None or not is_judged:
            return found
        if rate == 0:
            return [*found, *self._silent(sample)]
        self._rates.append(rate)
        if len(self._rates) >= RATE_WINDOWS:
            found += self._judged_late(sample)
        if not sample.is_paced:
            return found
        usual = sample.values.get(self._usual) if self._usual is not None else None
        return [*found, *self._shortfall.follow(self._rate, sample, rate, usual)]

    @property
    def active(self) -> list[Finding]:
        """Active findings, each with its current size."""
        stall = None if self._silence is None or self._silence.finding is None else self._said(self._silence)
        return [each for each in (stall, self._shortfall.active) if each is not None]

    @property
    def stalled_seconds(self) -> float:
        """Length of the present stall so far; 0 where there is none."""
        return 0.0 if self._silence is None or self._silence.finding is None else self._silence.seconds

    def _silent(self, sample: Sample) -> list[Finding]:
        """Add a window in which no operation completed; returns the finding of a stall that is new with it."""
        silence = self._silence or _Silence(sample.start, sample.end, is_before_load=not self._rates)
        self._silence = silence
        silence.end, silence.windows = sample.end, silence.windows + 1
        # In a stall, the values of latencies are the age of the oldest operation.
        has_latency = not sample.oldest_seconds and any(sample.values.get(name, 0.0) > 0 for name in self._latencies)
        silence.doubtful += has_latency
        if sample.oldest_seconds is not None:
            silence.oldest = max(silence.oldest or 0.0, sample.oldest_seconds)
        if silence.finding is not None or not self._is_stall(silence):
            return []
        return [self._begun(silence, sample)]

    def _is_stall(self, silence: _Silence) -> bool:
        """Whether operations would have completed in a silence, by the rate so far."""
        if silence.seconds < STALL_SECONDS - self._tolerance or silence.may_be_a_reset:
            return False
        known = sum(self._rates)
        is_known = len(self._rates) >= RATE_WINDOWS or (
            silence.windows >= RATE_WINDOWS and known * self._window_seconds >= STALL_OPERATIONS
        )
        return is_known and known / len(self._rates) * silence.seconds >= STALL_OPERATIONS

    def _begun(self, silence: _Silence, sample: Sample, *, is_before_load: bool = False) -> Finding:
        """Finding of a stall that is raised with this sample."""
        self._stalls += 1
        assert self._rate is not None, "only windows with a rate are looked at"
        if self._repeated is None or self._stalls <= STALLS_APART:
            self._repeated = Finding(
                FindingKind.STALL,
                onset=silence.start,
                series=self._rate,
                baseline=median(self._rates),
                level=0.0,
                ratio=0.0,
                confidence=STALL_CONFIDENCE,
                detected=sample.end,
                undone=Undone(0.0, 0, is_before_load=is_before_load),
            )
        silence.finding = self._repeated
        return self._said(silence)

    def _judged_late(self, sample: Sample) -> list[Finding]:
        """Stalls from before the rate was known, once it is: silences unlike all others of that time, since operations
        of some loads come in batches."""
        early, self._early = self._early, []
        found = []
        for silence in early:
            others = max((each.windows for each in early if each is not silence), default=0)
            if silence.windows > EARLY_STALL_LONGER * others and self._is_stall(silence):
                said = self._begun(silence, sample, is_before_load=silence.is_before_load)
                self._repeated = replace(said, until=silence.end)
                found.append(self._repeated)
            elif not silence.may_be_a_reset:
                self._rates.extend([0.0] * silence.windows)
        return found

    def _said(self, silence: _Silence) -> Finding:
        """Finding of the stall as it is now, with the earlier stalls that it is counted with."""
        assert silence.finding is not None, "only what was found is said"
        before = silence.finding.undone
        assert before is not None, "every stall has it"
        oldest, limited_by = silence.oldest, before.limited_by
        if oldest is not None:
            limited_by = LimitedBy.TARGET if oldest >= silence.seconds / 2 else limited_by or LimitedBy.CLIENT
        known = [each for each in (before.oldest_seconds, oldest) if each]
        seconds, times = before.seconds + silence.seconds, before.times + 1
        undone = Undone(seconds, times, max(known, default=None), limited_by, before.is_before_load)
        return replace(silence.finding, undone=undone, until=None)

    def _over(self, silence: _Silence, following: Sample | None) -> list[Finding]:
        """End a stall: operations complete again, in the sample `following`, or it is not known whether they do."""
        self._silence = None
        waited = max((following.values.get(name, 0.0) for name in self._latencies), default=0.0) if following else 0.0
        if waited >= silence.seconds / 2:
            silence.oldest = max(silence.oldest or 0.0, waited)
        if silence.finding is None and len(self._rates) < RATE_WINDOWS:
            self._early.append(silence)
            return []
        if silence.finding is None:
            if silence.may_be_a_reset:
                return []
            # No stall was raised: where operations are this rare, windows without any are part of the normal rate.
            self._rates.extend([0.0] * silence.windows)
            return []
        self._repeated = replace(self._said(silence), until=silence.end)
        return [self._repeated]


class _Shortfall:
    """Detector of a lasting fall of the rate that no latency accounts for. `length` is in windows."""

    def __init__(self, length: int) -> None:
        self._healthy: deque[tuple[float, float | None]] = deque(maxlen=HOUR)
        self._healthy_rates = RollingLevel(HOUR, 1)
        #: Median of the healthy latencies; 0 where none is known, None where it is to be computed.
        self._healthy_usual: float | None = None
        self._is_declared = False
        self._recent: deque[tuple[float, float, float | None]] = deque(maxlen=length)
        self._recent_rates = RollingLevel(length, 1)
        self._below_since: float | None = None
        self.active: Finding | None = None

    def follow(self, series: str, sample: Sample, rate: float, usual: float | None) -> list[Finding]:
        """Add a window's rate; returns a new or ended finding. `usual`: latency of most operations, None if not
        measured."""
        self._recent.append((sample.start, rate, usual))
        self._recent_rates.add(rate)
        if self._is_reference(sample):
            self._healthy.append((rate, usual))
            self._healthy_rates.add(rate)
            self._healthy_usual = None
        healthy, level = self._healthy_rates.median() or 0.0, self._recent_rates.median() or 0.0
        if len(self._healthy) < (RATE_WINDOWS if self._is_declared else SHORTFALL_WINDOWS):
            return []
        last = list(islice(reversed(self._recent), FAST))
        fast = sorted([rate for _, rate, _ in last])
        # The median, without what statistics.median costs at each window.
        if (fast[(len(fast) - 1) // 2] + fast[len(fast) // 2]) / 2 >= SHORTFALL_OVER * healthy:
            return self._come_back(sample)
        if self._below_since is None:
            self._below_since = last[len(last) // 2][0]
        if self.active is not None:
            seconds = sample.end - self.active.onset
            self.active = replace(
                self.active, level=level, ratio=level / healthy, undone=Undone(seconds, limited_by=LimitedBy.CLIENT)
            )
            return []
        is_long = len(self._recent) == self._recent.maxlen and self._below_since <= self._recent[0][0]
        if not is_long or level >= SHORTFALL_RATIO * healthy or self._is_slower():
            return []
        seconds = sample.end - self._below_since
        self.active = Finding(
            FindingKind.SHORTFALL,
            onset=self._below_since,
            series=series,
            baseline=healthy,
            level=level,
            ratio=level / healthy,
            confidence=LONE_CONFIDENCE,
            detected=sample.end,
            undone=Undone(seconds, limited_by=LimitedBy.CLIENT),
        )
        return [self.active]

    def _is_reference(self, sample: Sample) -> bool:
        """Whether a window counts for the healthy rate: in a declared baseline phase, else among the run's first."""
        if sample.phase == Phase.BASELINE:
            self._is_declared = True
            return True
        return len(self._healthy) < (RATE_WINDOWS if self._is_declared else HOUR)

    def _come_back(self, sample: Sample) -> list[Finding]:
        ended, self.active, self._below_since = self.active, None, None
        return [] if ended is None else [replace(ended, until=sample.start)]

    def _is_slower(self) -> bool:
        """Whether no latency is known, or operations take so much longer that clients which wait for each complete
        fewer."""
        if self._healthy_usual is None:
            before = [usual for _, usual in self._healthy if usual]
            self._healthy_usual = median(before) if before else 0.0
        since = [usual for _, _, usual in self._recent if usual]
        # Where no latency is known, nothing shows that the client requested less.
        return not self._healthy_usual or not since or median(since) >= SLOWER_RATIO * self._healthy_usual
