"""Fit a ramp to a whole run: drift, as distinct from a step and from a daily swing."""

from dataclasses import dataclass

import numpy as np

from cliffwatch.analysis.run_arrays import Array
from cliffwatch.analysis.spread import TINY

#: Least entries besides the ramp; starts that are tried; and least entries before a step.
_MORE_LEAST, _STARTS, _EDGE_LEAST = 4, 48, 3


@dataclass(frozen=True, slots=True)
class Ramp:
    """Ramp: a rise from index `start` to index `end` of the fitted column, which is level, or on the trend, before and
    after it.

    `explained` is the share of the sum of squares around the mean (or the trend) that the ramp explains,
    `explained_by_step` the share that the best step explains.
    """

    start: int
    end: int
    explained: float
    explained_by_step: float

    @property
    def is_better(self) -> bool:
        return self.explained > self.explained_by_step


def fit_ramp(column: Array, shortest: int, with_trend: bool = False) -> Ramp | None:
    """Fit the best ramp of at least `shortest` entries; None for a column that is too short or constant.

    `with_trend`: fit it on top of a straight line, such as that of a run which improves all along.
    """
    count = len(column)
    if count < shortest + _MORE_LEAST:
        return None
    values = column - column.mean()
    at = np.arange(count, dtype=np.float64)
    line = (at - at.mean()) / np.linalg.norm(at - at.mean())
    if with_trend:
        values = values - (values @ line) * line
    power = float(values @ values)
    if power <= 0:
        return None

    def gains(shapes: Array) -> Array:
        shapes = shapes - shapes.mean(axis=1, keepdims=True)
        if with_trend:
            shapes = shapes - (shapes @ line)[:, None] * line
        dots, squares = shapes @ values, (shapes**2).sum(axis=1)
        return np.asarray(np.where(dots > 0, dots**2 / np.maximum(squares, TINY), 0.0))

    stride = max(1, count // _STARTS)
    best = (0.0, 0, count - 1)
    for start in range(0, count - shortest + 1, stride):
        ends = np.array(sorted({*range(start + shortest, count, stride), count - 1}))
        found = gains(np.clip((at[None, :] - start) / (ends[:, None] - start), 0, 1))
        index = int(np.argmax(found))
        if found[index] > best[0]:
            best = (float(found[index]), start, int(ends[index]))
    edges = np.arange(_EDGE_LEAST, count - 2)
    step = float(gains((at[None, :] >= edges[:, None]).astype(np.float64)).max())
    return Ramp(best[1], best[2], best[0] / power, step / power)
