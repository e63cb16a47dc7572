"""A whole run as arrays: logarithms of every series, window by window and block by block."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cliffwatch.detect.finding import Notice, Role, Sample, Series
from cliffwatch.detect.mask import UNJUDGED
from cliffwatch.detect.spans import BLOCK, NOTICE_MASK

Array = NDArray[np.float64]
#: A run of fewer windows than this has blocks of one window.
_SHORT_RUN = 1500
#: Fewer windows than this say nothing of a series.
WINDOWS_LEAST = 24


@dataclass(frozen=True, slots=True)
class Whole:
    """`starts` and `ends` of windows (seconds); `levels` by series name, NaN where nothing was measured.

    `masked` windows follow a notice. Blocks are `size` windows each, and begin at the window `block_first`; `blocks` by
    series name are their robust means, NaN where a block has no window that counts. `baseline_end` is the first window
    after a declared baseline phase, 0 where there is none.
    """

    series: tuple[Series, ...]
    starts: Array
    ends: Array
    levels: dict[str, Array]
    masked: NDArray[np.bool_]
    size: int
    block_first: NDArray[np.int64]
    blocks: dict[str, Array]
    baseline_end: int
    window_seconds: float

    def names(self, role: Role) -> list[str]:
        return [one.name for one in self.series if one.role is role]

    def block_of(self, window: int) -> int:
        return int(np.searchsorted(self.block_first, window, side="right")) - 1


def whole_run(
    series: Sequence[Series], samples: Sequence[Sample], notices: Sequence[Notice], window_seconds: float
) -> Whole | None:
    """None when too little was measured to say anything of it."""
    judged = [sample for sample in samples if sample.phase not in UNJUDGED]
    if len(judged) < WINDOWS_LEAST:
        return None
    starts = np.array([sample.start for sample in judged])
    ends = np.array([sample.end for sample in judged])
    phases = [sample.phase for sample in judged]
    baseline_end = max((index + 1 for index, phase in enumerate(phases) if phase == "baseline"), default=0)
    levels = {}
    for one in series:
        values = np.array([sample.values.get(one.name, math.nan) for sample in judged])
        logarithms = _logarithms(values)
        if np.isfinite(logarithms).sum() >= WINDOWS_LEAST:
            levels[one.name] = logarithms
    masked = np.zeros(len(judged), dtype=np.bool_)
    for notice in notices:
        first = int(np.searchsorted(ends, notice.at))
        masked[max(0, first - 1) : first + NOTICE_MASK] = True
    size = 1 if len(judged) < _SHORT_RUN else BLOCK
    # Windows that do not fit into a block are left out at the beginning: the end of the run is what matters.
    first_block = np.arange(len(judged) % size, len(judged), size)
    blocks = {name: _blocks(np.where(masked, np.nan, column), first_block, size) for name, column in levels.items()}
    return Whole(
        series=tuple(one for one in series if one.name in levels),
        starts=starts,
        ends=ends,
        levels=levels,
        masked=masked,
        size=size,
        block_first=first_block,
        blocks=blocks,
        baseline_end=baseline_end if baseline_end < len(judged) else 0,
        window_seconds=window_seconds,
    )


def _logarithms(values: Array) -> Array:
    """As `Channel` sees them: coarse clocks spread over their tick, what cannot be a measurement left out."""
    tick = coarse_tick(values)
    if tick:
        spread = (np.arange(len(values)) * 0.6180339887498949) % 1 - 0.5
        values = np.maximum(values + spread * tick, tick / 4)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values > 0, np.log(values), np.nan)


def coarse_tick(values: Array) -> float:
    """The clock's tick when nearly all values are multiples of it and small ones; else 0."""
    known = values[np.isfinite(values)]
    for tick in (1e-3, 1e-4):
        ticks = known / tick
        if len(ticks) and np.mean((np.abs(ticks - np.round(ticks)) < 1e-6) & (ticks < 200)) > 0.95:
            return tick
    return 0.0


def _blocks(column: Array, first: NDArray[np.int64], size: int) -> Array:
    if size == 1:
        return column[first]
    rows = column[first[0] :].reshape(-1, size)
    known = np.isfinite(rows)
    count = known.sum(axis=1)
    with np.errstate(invalid="ignore"):
        plain = np.where(known, rows, 0).sum(axis=1) / np.maximum(count, 1)
        trimmed = np.sort(rows, axis=1)[:, 1:-1].mean(axis=1)
    # Holes sort to the end, so only whole blocks can be trimmed.
    result = np.where(count == size, trimmed, plain)
    return np.where(count > 0, result, np.nan)
