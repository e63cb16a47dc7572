"""A whole run as arrays: logarithms of every series, window by window and block by block."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cliffwatch.analysis.finding import Notice, Role, Sample, Series
from cliffwatch.analysis.preprocessing import (
    CLOCK_TICKS,
    Mask,
    all_spread_over_tick,
    are_on_tick,
    block_levels,
    is_of_load,
)
from cliffwatch.analysis.span_lengths import BLOCK
from cliffwatch.model.phase import Phase

Array = NDArray[np.float64]
#: A run of fewer windows than this has blocks of one window.
_SHORT_RUN = 1500
#: A series with fewer measured windows than this is not analysed.
WINDOWS_LEAST = 24


@dataclass(frozen=True, slots=True)
class RunArrays:
    """A whole run as arrays: `starts` and `ends` of windows (seconds); `levels` by series name (logarithms), NaN where
    nothing was measured.

    `masked` windows follow a notice, or are the one before it. Blocks are `size` windows each, and begin at the windows
    `block_first`; `blocks` by series name are their robust means (logarithms), NaN where a block has no window that
    counts. `baseline_end` is the first window after a declared baseline phase, 0 where there is none.
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

    def with_blocks(self, levels: Mapping[str, Array]) -> "RunArrays":
        """The run with the blocks of some series computed from other `levels`, by name of series."""
        blocks = {name: _blocks(column, self.masked, self.block_first, self.size) for name, column in levels.items()}
        return replace(self, blocks=self.blocks | blocks)


def whole_run(
    series: Sequence[Series], samples: Sequence[Sample], notices: Sequence[Notice], window_seconds: float
) -> RunArrays | None:
    """Whole run as arrays; None when too little was measured."""
    mask = Mask(notices)
    seen = [(sample, mask.is_masked(sample)) for sample in samples]
    judged = [sample for sample, _ in seen if is_of_load(sample)]
    if len(judged) < WINDOWS_LEAST:
        return None
    starts = np.array([sample.start for sample in judged])
    ends = np.array([sample.end for sample in judged])
    phases = [sample.phase for sample in judged]
    baseline_end = max((index + 1 for index, phase in enumerate(phases) if phase == Phase.BASELINE), default=0)
    levels = {}
    for one in series:
        values = np.array([sample.values.get(one.name, math.nan) for sample in judged])
        logarithms = _logarithms(values)
        if np.isfinite(logarithms).sum() >= WINDOWS_LEAST:
            levels[one.name] = logarithms
    masked = np.array([is_masked for sample, is_masked in seen if is_of_load(sample)])
    # The whole run is known, so the window before a notice is excluded too: the event may have begun in it.
    masked[:-1] |= masked[1:]
    size = 1 if len(judged) < _SHORT_RUN else BLOCK
    # Windows that do not fit into a block are left out at the beginning: the end of the run is what matters.
    first_block = np.arange(len(judged) % size, len(judged), size)
    blocks = {name: _blocks(column, masked, first_block, size) for name, column in levels.items()}
    return RunArrays(
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
    """Logarithms as in `Channel`: values of a coarse clock are spread over its tick; impossible values become NaN."""
    tick = coarse_tick(values)
    if tick:
        values = all_spread_over_tick(values, tick)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((values > 0) & np.isfinite(values), np.log(values), np.nan)


def coarse_tick(values: Array) -> float:
    """Tick of a coarse clock, where nearly all values are small multiples of it; else 0."""
    known = values[np.isfinite(values)]
    for tick in CLOCK_TICKS:
        if len(known) and np.mean(are_on_tick(known, tick)) > 0.95:
            return tick
    return 0.0


def _blocks(levels: Array, masked: NDArray[np.bool_], first: NDArray[np.int64], size: int) -> Array:
    column = np.where(masked, np.nan, levels)
    if size == 1:
        return column[first]
    return block_levels(column[first[0] :].reshape(-1, size))
