"""One latency series of a whole run in blocks, with the other series beside it."""

from dataclasses import dataclass

import numpy as np

from cliffwatch.analysis.finding import Role
from cliffwatch.analysis.offline import segments
from cliffwatch.analysis.run_arrays import Array, RunArrays
from cliffwatch.analysis.sizes import before_rise
from cliffwatch.analysis.span_lengths import HOUR_BLOCKS
from cliffwatch.analysis.thresholds import BLOCKS_LEAST, EDGE_BLOCKS_BEFORE, WARM_UP_BLOCKS

#: Divisors of lengths, for short runs: the longest warm-up, of a run; and the baseline, of the blocks before an onset.
_SKIPPED_PART, _BASELINE_PART = 6, 3


@dataclass(frozen=True, slots=True)
class View:
    """Blocks of one latency series that were measured, and the other series on the same blocks, with holes filled."""

    whole: RunArrays
    name: str
    block: Array
    client: Array
    devices: dict[str, Array]
    rate: Array | None
    skip: int

    @property
    def skip_window(self) -> int:
        return int(self.whole.block_first[int(self.block[self.skip])])

    def window(self, block: int) -> int:
        return int(self.whole.block_first[int(self.block[min(block, len(self.block) - 1)])])


def view_of(whole: RunArrays, name: str) -> View | None:
    """View of a latency series; None where too little of it was measured."""
    known = np.flatnonzero(np.isfinite(whole.blocks[name]))
    count = len(known)
    if count < BLOCKS_LEAST:
        return None
    devices = {
        one: segments.filled(whole.blocks[one])[known]
        for one in whole.names(Role.DEVICE_LATENCY)
        if one != name and np.isfinite(whole.blocks[one][known]).mean() > 0.5
    }
    rates = [one for one in whole.names(Role.RATE) if np.isfinite(whole.blocks[one][known]).mean() > 0.5]
    rate = segments.filled(whole.blocks[rates[0]])[known] if rates else None
    if whole.baseline_end:
        # The baseline phase itself is healthy, up to a rise that lasts. A rise may begin in the block in which it ends,
        # and be most of that block.
        measured = np.flatnonzero(np.isfinite(whole.levels[name][: whole.baseline_end]))
        healthy = before_rise(whole.levels[name][measured])
        end = int(measured[healthy]) if healthy < len(measured) else whole.baseline_end
        block = whole.block_of(end - whole.size // 2)
        skip = int(np.searchsorted(known, block))
    else:
        skip = min(WARM_UP_BLOCKS, count // _SKIPPED_PART)
    return View(whole, name, known.astype(np.float64), whole.blocks[name][known], devices, rate, min(skip, count - 1))


def baseline_before(view: View, until: int) -> float:
    """Baseline (a logarithm): the median of the declared baseline phase, else, as online, the mean of the three lowest
    hours before `until`."""
    if view.whole.baseline_end and view.skip >= EDGE_BLOCKS_BEFORE:
        return float(np.median(view.client[: view.skip]))
    return segments.lowest_level(
        view.client, until, min(HOUR_BLOCKS, max(EDGE_BLOCKS_BEFORE, until // _BASELINE_PART)), view.skip
    )
