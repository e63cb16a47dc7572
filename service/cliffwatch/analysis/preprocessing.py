"""Preprocessing of samples before they are compared, identical in online and offline detection.

Which windows are judged, what the values of a coarse clock stand for, and what the level of a block of windows is.
"""

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from cliffwatch.analysis.finding import Notice, Sample
from cliffwatch.analysis.span_lengths import BLOCK
from cliffwatch.analysis.thresholds import NOTICE_MASK
from cliffwatch.model.phase import UNJUDGED_PHASES

Array = NDArray[np.float64]
#: Ticks of clocks that show in latencies, the coarser first (seconds); a value of so many ticks and more hides none.
CLOCK_TICKS = (1e-3, 1e-4)
_TICKS_MOST = 200
#: Low-discrepancy steps that spread a coarse clock's values evenly over its tick, the same at every replay.
_GOLDEN = 0.6180339887498949
#: The lowest that a value of a coarse clock can stand for, in ticks.
_TICK_LEAST = 0.25


class Mask:
    """Which windows are judged, as they come: none in which a run prepares, none shortly after what explains a change.

    `window` is how many there were, `masked_until` up to which of them, or of those to come, a notice explains them.
    """

    def __init__(self, notices: Sequence[Notice] = ()) -> None:
        self.window = 0
        self.masked_until = 0
        self._pending = sorted(notices, key=_moment_of)

    def notice(self, notice: Notice) -> None:
        """Take in one of a restart or similar event, before the window in which it happened is counted."""
        insort(self._pending, notice, key=_moment_of)

    def is_masked(self, sample: Sample) -> bool:
        """Count a window, and say whether a notice explains it."""
        while self._pending and self._pending[0].at < sample.end:
            self._pending.pop(0)
            self.masked_until = self.window + NOTICE_MASK
        self.window += 1
        return self.window <= self.masked_until

    def is_judged(self, sample: Sample) -> bool:
        """Count a window, and say whether it is judged."""
        return not self.is_masked(sample) and is_of_load(sample)


def _moment_of(notice: Notice) -> float:
    return notice.at


def is_of_load(sample: Sample) -> bool:
    """Whether a window belongs to a phase that is judged."""
    return sample.phase not in UNJUDGED_PHASES


def judged(samples: Iterable[Sample], notices: Sequence[Notice]) -> Iterator[Sample]:
    """The samples that detection looks at while a run goes on."""
    mask = Mask(notices)
    return (sample for sample in samples if mask.is_judged(sample))


def tick_below(value: float, clocks: Sequence[float]) -> float:
    """First of these ticks of which the value is a small multiple, so that its level hides between two; 0 for none."""
    for tick in clocks:
        ticks = value / tick
        if ticks < _TICKS_MOST and abs(ticks - round(ticks)) < 1e-6:
            return tick
    return 0.0


def are_on_tick(values: Array, tick: float) -> NDArray[np.bool_]:
    """Whether `tick_below` finds this tick, of each value."""
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
    """`block_level` of each row; of a row with holes the mean of what was measured, NaN where that is nothing."""
    known = np.isfinite(rows)
    count = known.sum(axis=1)
    with np.errstate(invalid="ignore"):
        plain = np.where(known, rows, 0).sum(axis=1) / np.maximum(count, 1)
        trimmed = np.sort(rows, axis=1)[:, 1:-1].mean(axis=1)
    # Holes sort to the end, so only whole blocks can be trimmed.
    result = np.where(count == rows.shape[1], trimmed, plain)
    return np.where(count > 0, result, np.nan)
