"""Robust spread of a statistic, learned from the healthy part of the same run."""

import numpy as np
from numpy.typing import NDArray

#: A normal distribution's standard deviation / its median absolute deviation.
NORMAL = 1.4826
#: The standard error of a median / that of a mean, of a normal distribution: sqrt(pi / 2).
MEDIAN_ERROR = 1.25
#: Quantiles of a normal distribution at one standard deviation below and above its middle.
ONE_SIGMA = (0.16, 0.84)
#: Least divisor, in place of a sum of squares that is zero.
TINY = 1e-12


def middle(values: NDArray[np.float64]) -> float:
    """The median (the upper one of two), by selection: several times as fast as numpy's for short arrays."""
    return _selected(values, len(values) >> 1)


def lower_middle(values: NDArray[np.float64]) -> float:
    """The median (the lower one of two), which is high only where more than half of the values are."""
    return _selected(values, (len(values) - 1) >> 1)


def _selected(values: NDArray[np.float64], place: int) -> float:
    values = values.copy()
    values.partition(place)
    return values.item(place)


class Spread:
    """Robust standard deviation of the last values of a statistic; memory is bounded.

    It is overestimated from few values, the more so the fewer there are: a false alarm costs more than a late one.
    """

    __slots__ = ("_cached", "_cached_at", "_capacity", "_count", "_values")

    def __init__(self, capacity: int = 96) -> None:
        self._capacity = capacity
        self._values: list[float] = []
        self._count = 0
        self._cached: float | None = None
        self._cached_at = 0

    def __len__(self) -> int:
        return len(self._values)

    def add(self, value: float) -> None:
        if len(self._values) < self._capacity:
            self._values.append(value)
        else:
            self._values[self._count % self._capacity] = value
        self._count += 1

    def sigma(self) -> float | None:
        """Standard deviation; None for fewer than six values. Recomputed once a sixteenth of the values is new."""
        count = len(self._values)
        if count < 6:
            return None
        if self._cached is None or self._count - self._cached_at > count // 16:
            ordered = sorted(self._values)
            centre = ordered[count // 2]
            deviation = NORMAL * sorted([abs(value - centre) for value in ordered])[count // 2]
            half = (ordered[int(ONE_SIGMA[1] * (count - 1))] - ordered[int(ONE_SIGMA[0] * (count - 1))]) / 2
            self._cached = max(deviation, half) * (1 + 1.5 / count**0.5)
            self._cached_at = self._count
        return self._cached
