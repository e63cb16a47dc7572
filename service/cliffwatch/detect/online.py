"""Detection while a run goes on: one window at a time, in memory that does not grow.

A worker that was started again rebuilds the detector by feeding it the journal's samples from the first one: `feed` is
deterministic and depends on nothing but the samples and notices it was given, and 36 h of windows take seconds.
"""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from cliffwatch.detect.finding import Baseline, Finding, Kind, Notice, Role, Sample, Series

BLOCK = 60
CONFIRM = 10


@dataclass(slots=True)
class _Track:
    series: Series
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=360))
    collected: list[float] = field(default_factory=list)
    baseline: Baseline | None = None
    raised: int = 0
    onset: float = 0.0
    finding: Finding | None = None


class OnlineDetector:
    """`series`: every series that samples may hold a value of; others are ignored. `window_seconds` is their length."""

    def __init__(self, series: Sequence[Series], window_seconds: float) -> None:
        self._window_seconds = window_seconds
        self._tracks = {one.name: _Track(one) for one in series if one.role in (Role.LATENCY, Role.DEVICE_LATENCY)}

    def notice(self, notice: Notice) -> None:
        """Tell of a restart or the like, before the sample in which it happened is fed."""

    def feed(self, sample: Sample) -> list[Finding]:
        """Findings that are new with this sample, and new versions of earlier ones (same series, kind and onset)."""
        found = []
        for name, track in self._tracks.items():
            value = sample.values.get(name)
            if value is None or value <= 0 or sample.phase in ("prepare", "warm_up", "cool_down"):
                continue
            track.recent.append(value)
            found += self._judge(track, value, sample)
        return found

    def _judge(self, track: _Track, value: float, sample: Sample) -> list[Finding]:
        if track.baseline is None:
            track.collected.append(value)
            if len(track.collected) >= BLOCK and sample.phase != "baseline":
                level = median(track.collected)
                start = sample.end - len(track.collected) * self._window_seconds
                track.baseline = Baseline(track.series.name, level, start, sample.end)
                track.collected = []
            return []
        ratio = value / track.baseline.level
        if track.finding is not None:
            return []
        if ratio < 1.6:
            track.raised = 0
            return []
        track.raised += 1
        if track.raised == 1:
            track.onset = sample.start
        if track.raised < CONFIRM:
            return []
        level = median(list(track.recent)[-CONFIRM:])
        track.finding = Finding(
            Kind.CLIFF,
            track.onset,
            track.series.name,
            track.baseline.level,
            level,
            level / track.baseline.level,
            0.5,
            detected=sample.end,
        )
        return [replace(track.finding)]

    @property
    def baselines(self) -> Mapping[str, Baseline]:
        """What healthy was, by series name, once it is known."""
        return {name: track.baseline for name, track in self._tracks.items() if track.baseline is not None}

    @property
    def ratios(self) -> Mapping[tuple[str, str], float]:
        """Degradation ratios by (series name, span): the level over `fast`, `slow` and `drift` spans / the baseline."""
        spans = {"fast": 6, "slow": 180, "drift": 360}
        ratios = {}
        for name, track in self._tracks.items():
            if track.baseline is None:
                continue
            recent = list(track.recent)
            for span, length in spans.items():
                if recent:
                    ratios[name, span] = math.exp(median(map(math.log, recent[-length:]))) / track.baseline.level
        return ratios
