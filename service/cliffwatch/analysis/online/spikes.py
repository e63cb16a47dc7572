"""Spike detector: spikes that recur more often than this run's own past makes likely.

A spike is a rise of up to eight windows. How often spikes of a height start by chance is counted in the run itself, so
that compaction which was there from the beginning is normal for the run, and spikes that begin later are not.
"""

import math
from collections import deque
from dataclasses import dataclass

from cliffwatch.analysis.span_lengths import log_ratio
from cliffwatch.analysis.thresholds import (
    CHANCE_OF_TWO,
    HEIGHT_OF_TWO,
    SPIKE_ALIKE,
    SPIKE_CHANCE,
    SPIKE_CHANCE_CORROBORATED,
    SPIKE_QUIET,
    SPIKE_RATIO,
    SPIKE_SIGMAS,
    SPIKE_WINDOWS,
    SPIKES_APART,
)

_KEPT = 12
_BINS = 64
_BIN = 0.1


@dataclass(frozen=True, slots=True)
class Spike:
    """Spike: its first window by number and by time, its height (logarithm), and whether the device showed it too."""

    window: int
    start: float
    height: float
    corroborated: bool


class Spikes:
    """The spikes of one series. Memory is bounded."""

    def __init__(self) -> None:
        self._height = 0.0
        self._open_window = 0
        self._last_raised = -SPIKE_QUIET
        self._open_start = 0.0
        self._corroborated = False
        self._train: deque[Spike] = deque(maxlen=_KEPT)
        #: Number of past spikes by height: all of them (False), and those that the device showed too (True).
        self._past = {False: [0] * _BINS, True: [0] * _BINS}

    def is_without_any(self, deviation: float) -> bool:
        """Whether there is no spike yet that a train may have, and a window of this deviation is none."""
        return not self._train and not self._height and deviation <= log_ratio(SPIKE_RATIO)

    def follow(
        self,
        window: int,
        start: float,
        deviation: float,
        sigma: float,
        device_raised: bool,
        train_height: float | None = None,
    ) -> Spike | None:
        """Add a window's deviation from the recent level; returns a spike when one has just ended, else None.

        `train_height`: height of the active train's spikes (a logarithm). What is like them is one of them, although
        they have become part of the run's spread, `sigma`, since.
        """
        threshold = max(log_ratio(SPIKE_RATIO), SPIKE_SIGMAS * sigma)
        if train_height is not None:
            threshold = min(threshold, SPIKE_ALIKE * train_height)
        if deviation > threshold:
            if window - self._last_raised > SPIKE_QUIET:
                self._open_window, self._open_start, self._corroborated = window, start, False
                self._height = deviation
            elif self._height:
                self._height = max(self._height, deviation)
            self._last_raised = window
            self._corroborated = self._corroborated or device_raised
            return None
        if not self._height:
            return None
        spike = None
        if self._last_raised - self._open_window < SPIKE_WINDOWS:
            spike = Spike(self._open_window, self._open_start, self._height, self._corroborated or device_raised)
        self._height = 0.0
        return spike

    def train(self, spike: Spike) -> list[Spike] | None:
        """Add a spike; returns the train of spikes that it completes and that chance does not explain, else None."""
        self._train.append(spike)
        best: list[Spike] | None = None
        for corroborated in (True, False):
            spikes = [one for one in self._train if one.corroborated] if corroborated else list(self._train)
            if not spikes or spikes[-1] is not spike:
                continue
            found = self._unlikely(spikes, corroborated)
            if found is not None and (best is None or len(found) > len(best)):
                best = found
        self._age(spike.window)
        return best

    def forget(self) -> None:
        """Forget the last spikes, which something explains; those long before them count for the run's normal rate."""
        while self._train and self._train[-1].window - self._train[0].window > SPIKES_APART:
            self._count_oldest()
        self._train.clear()
        self._height = 0.0

    def drop(self, since: int) -> None:
        """Discard spikes that began at the window `since` or later: they were part of a longer change."""
        while self._train and self._train[-1].window >= since:
            self._train.pop()
        self._height = 0.0

    def _unlikely(self, spikes: list[Spike], corroborated: bool) -> list[Spike] | None:
        limit = SPIKE_CHANCE_CORROBORATED if corroborated else SPIKE_CHANCE
        last = spikes[-1]
        found = None
        for count in range(2, len(spikes) + 1):
            chosen = spikes[-count:]
            height = min(one.height for one in chosen)
            # Of a longer time, there are many more ways to choose.
            is_clear = corroborated and height > HEIGHT_OF_TWO
            if (chosen[1] if is_clear else last).window - chosen[0].window > SPIKES_APART:
                break
            slot = _slot(SPIKE_ALIKE * height)
            seen = sum(self._past[corroborated][slot:]) + sum(_slot(one.height) >= slot for one in spikes[:-count])
            expected = (seen + 1) / max(1, chosen[0].window) * (last.window - chosen[0].window + 1)
            if count == 2:
                # Two spikes are enough if close together, the first like them in this run, and shown by the device too.
                if corroborated and not seen and expected < CHANCE_OF_TWO and height > HEIGHT_OF_TWO:
                    found = chosen
            elif _chance(count - 1, expected) < limit:
                found = chosen
        return found

    def _age(self, window: int) -> None:
        """Count spikes that belong to no train any more as part of the run's normal rate: a train goes on while each
        spike follows the one before it soon enough, however long it is."""
        while self._train and (self._follower(window) - self._train[0].window > SPIKES_APART or self._is_full):
            self._count_oldest()

    def _count_oldest(self) -> None:
        old = self._train.popleft()
        slot = _slot(old.height)
        self._past[False][slot] += 1
        if old.corroborated:
            self._past[True][slot] += 1

    def _follower(self, window: int) -> int:
        """Window of the spike after the oldest one; the present `window` where there is none yet."""
        return self._train[1].window if len(self._train) > 1 else window

    @property
    def _is_full(self) -> bool:
        return len(self._train) == _KEPT


def _slot(height: float) -> int:
    """Bin of a height (a logarithm), by which past spikes are counted."""
    return min(_BINS - 1, max(0, int(height / _BIN)))


def _chance(count: int, expected: float) -> float:
    """Probability that at least `count` happen where `expected` do on average (Poisson)."""
    below = sum(math.exp(-expected) * expected**k / math.factorial(k) for k in range(count))
    return max(0.0, 1 - below)
