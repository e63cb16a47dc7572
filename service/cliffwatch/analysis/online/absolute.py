"""A rise so large and so lasting that no noise explains it, in any baseline.

The other detectors count in a run's own noise, and a run whose baseline was noisy enough hides anything from them. This
one asks only how far most of the last windows are above the baseline, and above all but a few of its windows.
"""

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from cliffwatch.analysis.finding import Baseline
from cliffwatch.analysis.online.channel import Channel
from cliffwatch.analysis.online.correlated import CorrelatedSeries
from cliffwatch.analysis.span_lengths import FAST, log_ratio
from cliffwatch.analysis.thresholds import CORROBORATED_RATIO

#: For how many windows most are so many times the baseline: where a device slowed down too (as long as a run's own
#: excursions may delay a cliff), and where none did or none was measured.
CORROBORATED_WINDOWS = 72
ABSOLUTE_ALONE_RATIO, ABSOLUTE_ALONE_WINDOWS = 20.0, 120
#: A rise of the client and of a device, each by its own baseline, that is this severe is called as soon as all of so
#: many windows are beyond it, if it is the first of its like: one that falls may be over before 72 windows.
SEVERE_RATIO, SEVERE_DEVICE_RATIO, SEVERE_WINDOWS = 20.0, 10.0, 15
#: Which share of these windows, and by how much they are above all but a few of the baseline's own.
_SHARE, _ABOVE_BAND = 0.65, 1.5
#: From this ratio to its own baseline a device is slower.
_DEVICE_RATIO = 2.0


@dataclass(frozen=True, slots=True)
class AbsoluteRise:
    """The level that it has reached (a logarithm), since how many windows, and the devices that slowed down too."""

    level: float
    windows: int
    devices: tuple[str, ...]


class Absolute:
    """Watches one series; memory is bounded."""

    def __init__(self) -> None:
        self._levels: deque[float] = deque(maxlen=ABSOLUTE_ALONE_WINDOWS)

    def follow(
        self, channel: Channel, level: float, correlated: CorrelatedSeries, more_load: bool, is_first: bool
    ) -> AbsoluteRise | None:
        """Take in a window's level; returns the rise where there is one. More load explains what no device shows.

        `is_first`: the run has not degraded yet, and has not come back from a rise as severe.
        """
        baseline = channel.baseline
        self._levels.append(level)
        last = sorted(list(self._levels)[-FAST:])[-(FAST // 2 + 1) :]
        if baseline is None or last[0] < _threshold(baseline, CORROBORATED_RATIO):
            return None
        if is_first and (severe := self._severe(channel, baseline, correlated)) is not None:
            return severe
        devices = slower_devices(correlated)
        ratio, windows = (
            (CORROBORATED_RATIO, CORROBORATED_WINDOWS) if devices else (ABSOLUTE_ALONE_RATIO, ABSOLUTE_ALONE_WINDOWS)
        )
        if len(self._levels) < windows or (more_load and not devices):
            return None
        threshold, recent = _threshold(baseline, ratio), list(self._levels)[-windows:]
        if sum(each >= threshold for each in recent) < _SHARE * windows:
            return None
        return _rise(channel, baseline, recent, devices)

    def _severe(self, channel: Channel, baseline: Baseline, correlated: CorrelatedSeries) -> AbsoluteRise | None:
        recent = list(self._levels)[-SEVERE_WINDOWS:]
        if len(recent) < SEVERE_WINDOWS or min(recent) < _threshold(baseline, SEVERE_RATIO):
            return None
        devices = slower_devices(correlated, SEVERE_DEVICE_RATIO)
        return _rise(channel, baseline, recent, devices) if devices else None


def _rise(channel: Channel, baseline: Baseline, recent: list[float], devices: tuple[str, ...]) -> AbsoluteRise:
    reached = sorted(recent)[len(recent) // 2]
    return AbsoluteRise(reached, _windows_since(channel, math.log(baseline.level), reached), devices)


def slower_devices(correlated: CorrelatedSeries, ratio: float = _DEVICE_RATIO) -> tuple[str, ...]:
    """The devices whose last windows are that many times as slow as their own baseline."""
    return tuple(name for name, channel in correlated.devices.items() if _is_slower(channel, ratio))


def _is_slower(channel: Channel, ratio: float) -> bool:
    level, baseline = channel.level(FAST), channel.baseline
    if level is None or baseline is None:
        return False
    return level - math.log(baseline.level) >= log_ratio(ratio)


def _threshold(baseline: Baseline, ratio: float) -> float:
    return max(math.log(baseline.level) + log_ratio(ratio), math.log(baseline.high) + log_ratio(_ABOVE_BAND))


def _windows_since(channel: Channel, low: float, high: float) -> int:
    """Since how many windows the series has been at the upper of two levels: where they differ most."""
    levels = np.array(channel.levels_since(-math.inf))
    middle, most = (low + high) / 2, (high - low) / 2
    gain = np.cumsum(np.clip(levels - middle, -most, most)[::-1])
    return int(np.argmax(gain)) + 1
