"""Fit a ramp to a whole run: drift, as distinct from a step and from a daily swing."""

from collections.abc import Sequence
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

    `error` is its squared error, `step_error` that of the best step.
    """

    start: int
    end: int
    error: float
    step_error: float

    @property
    def is_better(self) -> bool:
        return self.error < self.step_error


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
    return Ramp(best[1], best[2], power - best[0], power - step)


def joint_start(columns: Sequence[Array], end: int, shortest: int) -> int:
    """Index at which columns begin to rise together, up to index `end`: that of the most likely ramp, where the
    noise of each column is what the ramp leaves of it."""
    starts = np.arange(0, end - shortest + 1)
    lines = np.clip((np.arange(len(columns[0])) - starts[:, None]) / (end - starts[:, None]), 0, 1)
    lines -= lines.mean(axis=1, keepdims=True)
    squares, likelihood = (lines**2).sum(axis=1), np.zeros(len(starts))
    for column in columns:
        values = column - column.mean()
        explained = np.clip(lines @ values, 0, None) ** 2 / squares
        likelihood -= np.log(np.maximum(values @ values - explained, TINY))
    return int(starts[np.argmax(likelihood)])
