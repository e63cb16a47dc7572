"""Preprocessing of samples before they are compared, identical in online and offline detection.

It selects the windows that are judged, spreads the values of a coarse clock over its tick, and computes the level of a
block of windows.
"""

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from cliffwatch.analysis.finding import Notice, Sample
from cliffwatch.analysis.span_lengths import BLOCK
from cliffwatch.analysis.thresholds import NOTICE_MASK
from cliffwatch.model.phase import UNJUDGED_PHASES, Phase

Array = NDArray[np.float64]
#: Ticks of coarse clocks that show in latencies, the coarser first (seconds). They matter for values below
#: `_TICKS_MOST` ticks only.
CLOCK_TICKS = (1e-3, 1e-4)
_TICKS_MOST = 200
_TICKED_BELOW = _TICKS_MOST * CLOCK_TICKS[0]
#: Low-discrepancy steps that spread a coarse clock's values evenly over its tick, the same at every replay.
_GOLDEN = 0.6180339887498949
#: The lowest value that a coarse clock's value may be spread to, in ticks.
_TICK_LEAST = 0.25
#: Values on a tick after which the clock counts as coarse; and by how much a value off the tick lowers their number.
_COARSE, _COARSE_LOST = 24, 8


class Mask:
    """Select the windows that are judged: none in which a run prepares, and none shortly after a notice.

    `window` is the number of windows so far. Windows up to number `masked_until`, which may be ahead, are masked,
    because they follow a notice. A declared baseline phase is never masked: without it, the level after the notice
    would be taken for healthy, whatever happened in the meantime.
    """

    def __init__(self, notices: Sequence[Notice] = ()) -> None:
        self.window = 0
        self.masked_until = 0
        self._pending = sorted(notices, key=_moment_of)

    def notice(self, notice: Notice) -> None:
        """Add a restart or similar event; call this before the window that contains it is passed in."""
        insort(self._pending, notice, key=_moment_of)

    def is_masked(self, sample: Sample) -> bool:
        """Count a window, and return whether it is masked by a notice."""
        while self._pending and self._pending[0].at < sample.end:
            self._pending.pop(0)
            self.masked_until = self.window + NOTICE_MASK
        self.window += 1
        return self.window <= self.masked_until and sample.phase != Phase.BASELINE

    def is_judged(self, sample: Sample) -> bool:
        """Count a window, and return whether it is judged."""
        return not self.is_masked(sample) and is_of_load(sample)


def _moment_of(notice: Notice) -> float:
    return notice.at


def is_of_load(sample: Sample) -> bool:
    """Whether a window belongs to a phase that is judged."""
    return sample.phase not in UNJUDGED_PHASES


def judged(samples: Iterable[Sample], notices: Sequence[Notice]) -> Iterator[Sample]:
    """Samples that online detection judges."""
    mask = Mask(notices)
    return (sample for sample in samples if mask.is_judged(sample))


def tick_below(value: float, clocks: Sequence[float]) -> float:
    """First of these clock ticks of which the value is a small multiple, so that the real level is hidden between two
    ticks; 0 for none."""
    for tick in clocks:
        ticks = value / tick
        if ticks < _TICKS_MOST and abs(ticks - round(ticks)) < 1e-6:
            return tick
    return 0.0


class CoarseClock:
    """Clock whose ticks are coarse beside the values of one series: `tick` in seconds, 0 while none shows."""

    __slots__ = ("_seen", "tick")

    def __init__(self) -> None:
        self.tick = 0.0
        self._seen = 0

    def spread(self, value: float, index: int) -> float:
        """Follow the ticks of the `index`th value; returns it spread over its tick where the clock is coarse."""
        if value >= _TICKED_BELOW and not self._seen:
            return value
        if tick := tick_below(value, (self.tick,) if self.tick else CLOCK_TICKS):
            self._seen = min(self._seen + 1, 2 * _COARSE)
            if self._seen == _COARSE:
                self.tick = tick
        elif self._seen:
            self._seen = max(0, self._seen - _COARSE_LOST)
            if self._seen == 0:
                self.tick = 0.0
        return spread_over_tick(value, index, self.tick) if self.tick else value


def are_on_tick(values: Array, tick: float) -> NDArray[np.bool_]:
    """For each value, whether it is a small multiple of this tick, as in `tick_below`."""
    ticks = values / tick
    return np.asarray((np.abs(ticks - np.round(ticks)) < 1e-6) & (ticks < _TICKS_MOST))


def spread_over_tick(value: float, index: int, tick: float) -> float:
    """Spread the `index`th value of a coarse clock over its tick, so that medians move within a tick."""
    return max(value + ((index * _GOLDEN) % 1 - 0.5) * tick, tick * _TICK_LEAST)


def all_spread_over_tick(values: Array, tick: float) -> Array:
    """`spread_over_tick` of each value."""
    spread = (np.arange(len(values)) * _GOLDEN) % 1 - 0.5
    return np.maximum(values + spread * tick, tick * _TICK_LEAST)


def block_level(levels: Sequence[float]) -> float:
    """The level of a whole block: the mean of its windows without the lowest and the highest."""
    return sum(sorted(levels)[1:-1]) / (BLOCK - 2)


def block_levels(rows: Array) -> Array:
    """`block_level` of each row; for a row with holes the mean of its measured values, NaN where there are none."""
    known = np.isfinite(rows)
    count = known.sum(axis=1)
    with np.errstate(invalid="ignore"):
        plain = np.where(known, rows, 0).sum(axis=1) / np.maximum(count, 1)
        trimmed = np.sort(rows, axis=1)[:, 1:-1].mean(axis=1)
    # Holes sort to the end, so only whole blocks can be trimmed.
    result = np.where(count == rows.shape[1], trimmed, plain)
    return np.where(count > 0, result, np.nan)
