"""Fit a rise that lasts until the end of a series, and compare its error with that of the best daily cycle."""

import math
from dataclasses import dataclass

import numpy as np

from cliffwatch.analysis.run_arrays import Array
from cliffwatch.analysis.spread import TINY
from cliffwatch.analysis.thresholds import FITTED_SWING

#: Peak hours and skews of daily swings that are tried; with a skew of 0 a swing rises as fast as it falls.
_HOURS, _SKEWS = 24, (0.0, 0.4, -0.4)
#: Least entries of a rise, and of the level before it.
_LEAST = 4
#: Squared error per entry of a perfect fit.
_ERROR_LEAST = 1e-6


@dataclass(frozen=True, slots=True)
class Rising:
    """A level that began to rise at entry `start` and has gained `rise` (a logarithm) since.

    `by_swing` is the squared error of the best daily swing / that of the rise.
    """

    start: int
    rise: float
    by_swing: float
    shape: Array


def fit_rising(levels: Array, entries_a_day: float) -> Rising | None:
    """Fit the best rise that goes on until the end; None where no rise beats a constant. Rise and daily swing may
    each be on top of a straight line that falls, such as that of a run which improves."""
    count = len(levels)
    if count < 2 * _LEAST:
        return None
    at = np.arange(count, dtype=np.float64)
    starts = np.arange(_LEAST - 1, count - _LEAST)
    shapes = np.clip(at[None, :] - starts[:, None], 0, None)
    best: tuple[float, int, float] | None = None
    for line in (False, True):
        values, slope = _without(levels, at, line)
        others, slopes = _without_each(shapes, at, line)
        squares, dots = (others**2).sum(axis=1), others @ values
        gains = np.where((dots > 0) & (squares > 0), dots**2 / np.maximum(squares, TINY), 0.0)
        index = int(np.argmax(gains))
        height = float(dots[index] / max(squares[index], TINY))
        if line and slope - height * slopes[index] > 0:
            continue
        error = float(values @ values) - float(gains[index])
        if gains[index] > 0 and (best is None or error < best[0]):
            best = (error, index, height * float(shapes[index][-1]))
    if best is None:
        return None
    error, index, rise = best
    floor = _ERROR_LEAST * count
    by_swing = _swing_error(levels, at, entries_a_day) / max(error, floor)
    return Rising(int(starts[index]), rise, by_swing, shapes[index])


def _swing_error(levels: Array, at: Array, entries_a_day: float) -> float:
    """The least squared error of a daily swing that is no larger than `FITTED_SWING`, with its peak at any hour."""
    angle = 2 * math.pi * (at[None, :] / entries_a_day + np.arange(_HOURS)[:, None] / _HOURS)
    waves = np.concatenate([np.sin(angle + skew * np.sin(angle)) for skew in _SKEWS])
    least = math.inf
    for line in (False, True):
        values, slope = _without(levels, at, line)
        shapes, slopes = _without_each(waves, at, line)
        squares, dots = (shapes**2).sum(axis=1), shapes @ values
        heights = np.clip(dots / np.maximum(squares, TINY), 0, FITTED_SWING)
        errors = float(values @ values) - 2 * heights * dots + heights**2 * squares
        least = min(least, float(np.where(slope <= heights * slopes, errors, math.inf).min()))
    return least


def _without(values: Array, at: Array, line: bool) -> tuple[Array, float]:
    """Subtract the mean, and the straight line if `line`; returns the rest and the line's slope."""
    left, slopes = _without_each(values[None, :], at, line)
    return left[0], float(slopes[0])


def _without_each(rows: Array, at: Array, line: bool) -> tuple[Array, Array]:
    """Subtract the mean, and the straight line if `line`, from each row; returns the rest and the slopes."""
    left = rows - rows.mean(axis=1, keepdims=True)
    if not line:
        return left, np.zeros(len(rows))
    centred = at - at.mean()
    slopes = left @ centred / float(centred @ centred)
    return left - slopes[:, None] * centred, slopes
