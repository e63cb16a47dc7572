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
from cliffwatch.analysis.finding import Finding, FindingKind, LimitedBy, Notice, Role, Sample, Series, Undone
from cliffwatch.analysis.preprocessing import Mask
from cliffwatch.analysis.span_lengths import FAST, HOUR
from cliffwatch.analysis.thresholds import (
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
    """Consecutive windows in which no operation completed. `oldest` is 0 where no operation was outstanding."""

    start: float
    end: float
    windows: int = 0
    oldest: float | None = None
    finding: Finding | None = None

    @property
    def seconds(self) -> float:
        return self.end - self.start


class WorkJudge:
    """Detector of stalls and shortfalls. `series`: those of the samples, of which the rate and the latencies are used.
    `window_seconds`: length of a sample. `notices`: those that are known before the first sample."""

    def __init__(self, series: Sequence[Series], window_seconds: float, notices: Sequence[Notice] = ()) -> None:
        self._rate = next((one.name for one in series if one.role is Role.RATE), None)
        latencies = [one for one in series if one.role is Role.LATENCY]
        self._latencies = [one.name for one in latencies]
        #: Latency of most operations (the lowest quantile), which limits a client that waits for each operation.
        self._usual = min(latencies, key=lambda one: one.quantile or 1.0).name if latencies else None
        self._mask = Mask(notices)
        self._tolerance = window_seconds * GAP_TOLERANCE
        self._end = -math.inf
        self._silence: _Silence | None = None
        self._rates: deque[float] = deque(maxlen=HOUR)
        self._repeated: Finding | None = None
        self._stalls = 0
        self._shortfall = _Shortfall(max(SHORTFALL_WINDOWS, math.ceil(SHORTFALL_SECONDS / window_seconds)))

    def notice(self, notice: Notice) -> None:
        """Add a restart or similar event; call this before feeding the sample that contains it."""
        self._mask.notice(notice)

    def feed(self, sample: Sample) -> list[Finding]:
        """Add a sample; returns new findings, and new versions of earlier ones (same series, kind and onset)."""
        is_judged = self._mask.is_judged(sample)
        rate = self._rate_in(sample)
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
        if not sample.is_paced:
            return found
        usual = sample.values.get(self._usual) if self._usual is not None else None
        return [*found, *self._shortfall.follow(self._rate, sample, rate, usual)]

    @property
    def active(self) -> list[Finding]:
        """Active findings, each with its current size."""
        stall = None if self._silence is None or self._silence.finding is None else self._said(self._silence)
        return [each for each in (stall, self._shortfall.active) if each is not None]

    def _rate_in(self, sample: Sample) -> float | None:
        """Rate in a sample; None where it was not measured, as where a counter that was reset gives 0."""
        rate = None if self._rate is None else sample.values.get(self._rate)
        has_latency = any(sample.values.get(name, 0.0) > 0 for name in self._latencies)
        # In a stall, the values of latencies are the age of the oldest operation.
        return None if rate == 0 and has_latency and not sample.oldest_seconds else rate

    @property
    def stalled_seconds(self) -> float:
        """Length of the present stall so far; 0 where there is none."""
        return 0.0 if self._silence is None or self._silence.finding is None else self._silence.seconds

    def _silent(self, sample: Sample) -> list[Finding]:
        """Add a window in which no operation completed; returns the finding of a stall that is new with it."""
        silence = self._silence or _Silence(sample.start, sample.end)
        self._silence = silence
        silence.end, silence.windows = sample.end, silence.windows + 1
        if sample.oldest_seconds is not None:
            silence.oldest = max(silence.oldest or 0.0, sample.oldest_seconds)
        if silence.finding is not None or silence.seconds < STALL_SECONDS - self._tolerance:
            return []
        usual = sum(self._rates) / len(self._rates) if len(self._rates) >= RATE_WINDOWS else 0.0
        if usual * silence.seconds < STALL_OPERATIONS:
            return []
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
                undone=Undone(0.0, 0),
            )
        silence.finding = self._repeated
        return [self._said(silence)]

    def _said(self, silence: _Silence) -> Finding:
        """Finding of the stall as it is now, with the earlier stalls that it is counted with."""
        assert silence.finding is not None, "only what was found is said"
        before = silence.finding.undone
        assert before is not None, "every stall has it"
        oldest, limited_by = silence.oldest, before.limited_by
        if oldest is not None:
            limited_by = LimitedBy.TARGET if oldest >= silence.seconds / 2 else limited_by or LimitedBy.CLIENT
        known = [each for each in (before.oldest_seconds, oldest) if each]
        undone = Undone(before.seconds + silence.seconds, before.times + 1, max(known, default=None), limited_by)
        return replace(silence.finding, undone=undone, until=None)

    def _over(self, silence: _Silence, following: Sample | None) -> list[Finding]:
        """End a stall: operations complete again, in the sample `following`, or it is not known whether they do."""
        self._silence = None
        if silence.finding is None:
            # No stall was raised: where operations are this rare, windows without any are part of the normal rate.
            self._rates.extend([0.0] * silence.windows)
            return []
        waited = max((following.values.get(name, 0.0) for name in self._latencies), default=0.0) if following else 0.0
        if waited >= silence.seconds / 2:
            silence.oldest = max(silence.oldest or 0.0, waited)
        self._repeated = replace(self._said(silence), until=silence.end)
        return [self._repeated]


class _Shortfall:
    """Detector of a lasting fall of the rate that no latency accounts for. `length` is in windows."""

    def __init__(self, length: int) -> None:
        self._healthy: deque[tuple[float, float | None]] = deque(maxlen=HOUR)
        self._level = 0.0
        self._is_declared = False
        self._recent: deque[tuple[float, float, float | None]] = deque(maxlen=length)
        self._below_since: float | None = None
        self.active: Finding | None = None

    def follow(self, series: str, sample: Sample, rate: float, usual: float | None) -> list[Finding]:
        """Add a window's rate; returns a new or ended finding. `usual`: latency of most operations, None if not
        measured."""
        self._recent.append((sample.start, rate, usual))
        if self._is_reference(sample):
            self._healthy.append((rate, usual))
            self._level = median(rate for rate, _ in self._healthy)
        healthy = self._level
        if len(self._healthy) < (RATE_WINDOWS if self._is_declared else SHORTFALL_WINDOWS):
            return []
        last = list(islice(reversed(self._recent), FAST))
        if median(rate for _, rate, _ in last) >= SHORTFALL_OVER * healthy:
            return self._come_back(sample)
        if self._below_since is None:
            self._below_since = last[len(last) // 2][0]
        level = median(rate for _, rate, _ in self._recent)
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
        before = [usual for _, usual in self._healthy if usual]
        since = [usual for _, _, usual in self._recent if usual]
        # Where no latency is known, nothing shows that the client requested less.
        return not before or not since or median(since) >= SLOWER_RATIO * median(before)
