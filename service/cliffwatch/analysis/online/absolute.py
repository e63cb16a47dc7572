"""Absolute detector: a rise that is too large and lasting for noise to explain, whatever the baseline.

The other detectors compare a rise with the run's own noise, so that a noisy enough baseline hides any rise from them.
This detector only checks how far most of the last windows are above the baseline's level, and above all but a few of
the baseline's windows.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

import numpy as np

from cliffwatch.analysis.finding import Baseline
from cliffwatch.analysis.online.channel import Channel
from cliffwatch.analysis.online.correlated import CorrelatedSeries
from cliffwatch.analysis.span_lengths import FAST, log_ratio
from cliffwatch.analysis.thresholds import (
    ABOVE_BAND,
    ABSOLUTE_ALONE_RATIO,
    ABSOLUTE_ALONE_WINDOWS,
    ABSOLUTE_DEVICE_RATIO,
    ABSOLUTE_SHARE,
    CORROBORATED_RATIO,
    CORROBORATED_WINDOWS,
    FAR_BEYOND,
    SEVERE_DEVICE_RATIO,
    SEVERE_RATIO,
    SEVERE_WINDOWS,
)


@dataclass(frozen=True, slots=True)
class AbsoluteRise:
    """Rise found by the absolute detector: level reached (logarithm), windows since it began, devices slower too."""

    level: float
    windows: int
    devices: tuple[str, ...]


class Absolute:
    """Absolute detector of one series; memory is bounded."""

    def __init__(self) -> None:
        self._levels: deque[float] = deque(maxlen=ABSOLUTE_ALONE_WINDOWS)

    def follow(
        self,
        channel: Channel,
        level: float,
        correlated: CorrelatedSeries,
        more_load: bool,
        is_first: Callable[[], bool],
        degraded: float | None,
    ) -> AbsoluteRise | None:
        """Add a window's level; returns the rise, if there is one. With `more_load`, a rise needs a slower device.

        `is_first` returns whether a severe rise would be the run's first. It is slow, so it is called only for a rise.
        `degraded`: the level (a logarithm) of a run that has degraded already, far beyond which a further rise is;
        None in a healthy run.
        """
        baseline = channel.baseline
        self._levels.append(level)
        if baseline is None:
            return None
        last = sorted(islice(reversed(self._levels), FAST))[-(FAST // 2 + 1) :]
        if last[0] < _threshold(baseline, CORROBORATED_RATIO, degraded):
            return None
        if is_first() and (severe := self._severe(channel, baseline, correlated)) is not None:
            return severe
        devices = slower_devices(correlated, is_further=degraded is not None)
        ratio, windows = (
            (CORROBORATED_RATIO, CORROBORATED_WINDOWS) if devices else (ABSOLUTE_ALONE_RATIO, ABSOLUTE_ALONE_WINDOWS)
        )
        if len(self._levels) < windows or (more_load and not devices):
            return None
        threshold, recent = _threshold(baseline, ratio, degraded), list(self._levels)[-windows:]
        if sum(each >= threshold for each in recent) < ABSOLUTE_SHARE * windows:
            return None
        return _rise(channel, math.log(baseline.level) if degraded is None else degraded, recent, devices)

    def _severe(self, channel: Channel, baseline: Baseline, correlated: CorrelatedSeries) -> AbsoluteRise | None:
        recent = list(self._levels)[-SEVERE_WINDOWS:]
        if len(recent) < SEVERE_WINDOWS or min(recent) < _threshold(baseline, SEVERE_RATIO, None):
            return None
        devices = slower_devices(correlated, SEVERE_DEVICE_RATIO)
        return _rise(channel, math.log(baseline.level), recent, devices) if devices else None


def _rise(channel: Channel, before: float, recent: list[float], devices: tuple[str, ...]) -> AbsoluteRise:
    reached = sorted(recent)[len(recent) // 2]
    return AbsoluteRise(reached, _windows_since(channel, before, reached), devices)


def slower_devices(
    correlated: CorrelatedSeries, ratio: float = ABSOLUTE_DEVICE_RATIO, is_further: bool = False
) -> tuple[str, ...]:
    """Devices whose last windows are at least `ratio` times as slow as their own baseline; if `is_further`, as their
    recent level since the run degraded."""
    return tuple(name for name, channel in correlated.devices.items() if _is_slower(channel, ratio, is_further))


def _is_slower(channel: Channel, ratio: float, is_further: bool) -> bool:
    level, baseline = channel.level(FAST), channel.baseline
    if level is None or baseline is None:
        return False
    before = channel.recent_level if is_further else math.log(baseline.level)
    return before is not None and level - before >= log_ratio(ratio)


def _threshold(baseline: Baseline, ratio: float, degraded: float | None) -> float:
    least = max(math.log(baseline.level) + log_ratio(ratio), math.log(baseline.high) + log_ratio(ABOVE_BAND))
    return least if degraded is None else max(least, degraded + log_ratio(FAR_BEYOND))


def _windows_since(channel: Channel, low: float, high: float) -> int:
    """Number of windows since the series rose from level `low` to `high`, by the split that separates these best."""
    levels = channel.stored_levels()
    middle, most = (low + high) / 2, (high - low) / 2
    gain = np.cumsum(np.clip(levels - middle, -most, most)[::-1])
    return int(np.argmax(gain)) + 1
