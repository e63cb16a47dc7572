"""Shape of the last hours of a series: a step, a line that begins to rise, or neither clearly."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cliffwatch.analysis.online.channel import Channel
from cliffwatch.analysis.span_lengths import REFERENCE_MINIMUM, STEP_SPANS
from cliffwatch.analysis.spread import TINY, middle
from cliffwatch.analysis.thresholds import GRADUAL, SUDDEN_RISE

#: Blocks over which a step and a ramp are compared, the fewest of them, and the blocks between the starts of two ramps.
_BLOCKS, _LEAST, _RAMP_STRIDE = 150, 3 * REFERENCE_MINIMUM, 15
#: Median deviations from the median at which values are clipped; least blocks before and after a step.
_OUTLIER, _EDGE_LEAST = 5, 3


@dataclass(frozen=True, slots=True)
class _Shape:
    """How well the best ramp describes a rise, as its squared error / that of the best step, and the blocks since that
    step."""

    ramp_by_step: float
    blocks: int


def is_gradual(client: Channel, devices: Sequence[Channel] = (), factor: float = GRADUAL) -> bool:
    """Whether the last hours of a client, and of the devices that show its rise, are a line that begins to rise: its
    squared error is below `factor` times that of a step."""
    shape = _shape_of(client, devices)
    return shape is not None and shape.ramp_by_step < factor


def sudden_since(client: Channel, devices: Sequence[Channel] = ()) -> int | None:
    """How many blocks ago the step was that the last hours of a client and of devices clearly are; None otherwise."""
    shape = _shape_of(client, devices)
    return None if shape is None or shape.ramp_by_step < SUDDEN_RISE else shape.blocks


def _shape_of(client: Channel, devices: Sequence[Channel]) -> _Shape | None:
    """Shape of the last hours of a client and of devices together; None in too short a run."""
    values = client.last_blocks(_BLOCKS)
    if len(values) < _LEAST:
        return None
    others = [device.last_blocks(len(values)) for device in devices]
    rows = np.array([_standardised(each) for each in (values, *others) if len(each) == len(values)])
    count = len(values)
    at = np.arange(count, dtype=np.float64)
    # The part of the sum of squares that each rising shape explains, of all rows together.
    left = np.clip(np.cumsum(rows, axis=1)[:, _EDGE_LEAST - 1 : -_EDGE_LEAST], None, 0)
    sizes = np.arange(_EDGE_LEAST, count - _EDGE_LEAST + 1, dtype=np.float64)[: left.shape[1]]
    steps = (left**2 / sizes + left**2 / (count - sizes)).sum(axis=0)
    lines = np.clip(at - np.arange(0, count - STEP_SPANS[-1] + 1, _RAMP_STRIDE)[:, None], 0, None)
    lines -= lines.mean(axis=1, keepdims=True)
    ramps = (np.clip(lines @ rows.T, 0, None) ** 2 / (lines**2).sum(axis=1)[:, None]).sum(axis=1)
    power = float((rows**2).sum())
    best = int(np.argmax(steps))
    error = power - float(steps[best])
    return _Shape((power - float(ramps.max())) / (error or TINY), count - int(sizes[best]))


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values without their mean and outliers, in units of their noise from block to block."""
    centre = middle(values)
    reach = _OUTLIER * middle(np.abs(values - centre))
    values = np.clip(values, centre - reach, centre + reach)
    return np.asarray((values - values.mean()) / (middle(np.abs(np.diff(values))) or 1.0))
