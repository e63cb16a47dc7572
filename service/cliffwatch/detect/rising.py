"""Rising since when, and whether a day's swing of a run that is otherwise level or improves would do as well."""

import math
from dataclasses import dataclass

import numpy as np

from cliffwatch.detect.whole import Array

#: The logarithm of the largest daily swing that is healthy, from its middle, with a little for its shape.
SWING = 0.105
#: A rise takes so many entries at least, and follows as many that are level.
_LEAST = 4


@dataclass(frozen=True, slots=True)
class Rising:
    """A level that began to rise at entry `start` and has gained `rise` (a logarithm) since.

    `by_swing` is how much larger the squared error of the best daily swing is than that of the rise.
    """

    start: int
    rise: float
    by_swing: float
    shape: Array


def fit_rising(levels: Array, entries_a_day: float) -> Rising | None:
    """The best rise that goes on until the end; None where none is better than a level. Both it and the swing may come
    on top of a straight line that falls, such as that of a run which improves."""
    count = len(levels)
    if count < 2 * _LEAST:
        return None
    at = np.arange(count, dtype=np.float64)
    shapes = np.clip(at[None, :] - np.arange(_LEAST - 1, count - _LEAST)[:, None], 0, None)
    best: tuple[float, int, float] | None = None
    for line in (False, True):
        values, slope = _without(levels, at, line)
        others = np.array([_without(shape, at, line)[0] for shape in shapes]) if line else shapes
        others = others - others.mean(axis=1, keepdims=True)
        squares, dots = (others**2).sum(axis=1), others @ values
        gains = np.where((dots > 0) & (squares > 0), dots**2 / np.maximum(squares, 1e-12), 0.0)
        index = int(np.argmax(gains))
        height = float(dots[index] / max(squares[index], 1e-12))
        if line and slope - height * _slope(shapes[index], at) > 0:
            continue
        error = float(values @ values) - float(gains[index])
        if gains[index] > 0 and (best is None or error < best[0]):
            best = (error, index, height * float(shapes[index][-1]))
    if best is None:
        return None
    error, index, rise = best
    floor = 1e-6 * count
    return Rising(index + _LEAST - 1, rise, _swing_error(levels, at, entries_a_day) / max(error, floor), shapes[index])


def _swing_error(levels: Array, at: Array, entries_a_day: float) -> float:
    """The least squared error of a daily swing that is no larger than `SWING`."""
    angle = 2 * math.pi * at / entries_a_day
    errors = []
    for line in (False, True):
        columns = [np.ones_like(at), np.sin(angle), np.cos(angle), *([at - at.mean()] if line else [])]
        fitted = np.linalg.lstsq(np.column_stack(columns), levels, rcond=None)[0]
        if line and fitted[3] > 0:
            continue
        size = math.hypot(fitted[1], fitted[2])
        scale = min(1.0, SWING / size) if size > 0 else 0.0
        left, _ = _without(levels - scale * (fitted[1] * columns[1] + fitted[2] * columns[2]), at, False)
        if line:
            straight, slope = _without(left, at, True)
            left = straight if slope < 0 else left
        errors.append(float(left @ left))
    return min(errors)


def _slope(values: Array, at: Array) -> float:
    centred = at - at.mean()
    return float(centred @ values / (centred @ centred))


def _without(values: Array, at: Array, line: bool) -> tuple[Array, float]:
    """Without the mean, and the straight line if asked for; and the line's slope."""
    left = values - values.mean()
    if not line:
        return left, 0.0
    slope = _slope(values, at)
    return left - slope * (at - at.mean()), slope
