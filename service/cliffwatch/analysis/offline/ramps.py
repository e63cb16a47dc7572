"""Fit a ramp to a whole run: drift, as distinct from a step and from a daily swing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cliffwatch.analysis.run_arrays import Array
from cliffwatch.analysis.span_lengths import log_ratio
from cliffwatch.analysis.spread import TINY
from cliffwatch.analysis.thresholds import DAILY_SWING, DAILY_SWING_LEAVES

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


def joint_start(columns: Sequence[Array], end: int, shortest: int, day: float) -> int:
    """Index at which columns begin to rise together, up to index `end`: that of the most likely ramp, where the noise
    of each column is what the ramp, and a daily swing if they have one, leave of it. `day`: entries in a day."""
    count, starts = len(columns[0]), np.arange(0, end - shortest + 1)
    lines = np.clip((np.arange(count) - starts[:, None]) / (end - starts[:, None]), 0, 1)
    lines -= lines.mean(axis=1, keepdims=True)
    angle = 2 * np.pi * np.arange(count) / day
    waves = np.stack([np.sin(angle), np.cos(angle)])
    waves -= waves.mean(axis=1, keepdims=True)
    alone, swinging = np.zeros(len(starts)), np.zeros(len(starts))
    for column in columns:
        values = column - column.mean()
        alone += np.log(_errors(lines, np.broadcast_to(values, lines.shape)))
        swinging += np.log(_errors(lines, values - _swings(lines, waves, values)))
    has_swing = swinging.min() < alone.min() + len(columns) * math.log(DAILY_SWING_LEAVES)
    return int(starts[np.argmin(swinging if has_swing else alone)])


def _errors(lines: Array, values: Array) -> Array:
    """Squared error that each of `lines`, as a rise, leaves of its row of `values`."""
    slopes = np.clip((values * lines).sum(axis=1) / (lines**2).sum(axis=1), 0, None)
    return np.asarray(np.maximum(((values - slopes[:, None] * lines) ** 2).sum(axis=1), TINY))


def _swings(lines: Array, waves: Array, values: Array) -> Array:
    """The sum of two `waves` that fits `values` best beside each of `lines`, cut to at most `DAILY_SWING`."""
    # Shape: lines x 2 waves x entries; what a line explains of a wave is left to the line.
    beside = waves - (lines @ waves.T / (lines**2).sum(axis=1)[:, None])[:, :, None] * lines[:, None, :]
    squares = beside @ beside.transpose(0, 2, 1) + TINY * np.eye(2)
    sizes = np.linalg.solve(squares, (beside @ values)[:, :, None])[:, :, 0]
    sizes *= np.minimum(1, log_ratio(DAILY_SWING) / np.maximum(np.hypot(*sizes.T), TINY))[:, None]
    return np.asarray(sizes @ waves)
