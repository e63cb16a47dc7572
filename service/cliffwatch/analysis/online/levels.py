"""Rolling quantiles of a series' last values, kept sorted."""

from bisect import bisect_left, insort
from collections import deque


class RollingLevel:
    """Quantiles of the last `most` values; None while there are fewer than `least`."""

    __slots__ = ("_least", "_most", "_ordered", "_values")

    def __init__(self, most: int, least: int) -> None:
        self._most = most
        self._least = least
        self._values: deque[float] = deque()
        self._ordered: list[float] = []

    def add(self, value: float) -> None:
        if len(self._values) == self._most:
            del self._ordered[bisect_left(self._ordered, self._values.popleft())]
        self._values.append(value)
        insort(self._ordered, value)

    def median(self) -> float | None:
        count = len(self._ordered)
        return (self._ordered[(count - 1) // 2] + self._ordered[count // 2]) / 2 if count >= self._least else None

    def quantile(self, share: float) -> float | None:
        count = len(self._ordered)
        return self._ordered[min(count - 1, int(share * count))] if count >= self._least else None
