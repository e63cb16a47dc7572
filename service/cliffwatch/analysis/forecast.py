"""Forecast when a drifting latency will pass a limit, by extrapolation, with a 90 % interval.

The forecast is a straight line through the logarithms of the last medians, with the band in which 90 % of such lines
lie. Medians of neighbouring spans are correlated, so they count as fewer than they are; the band is widened
accordingly.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from cliffwatch.model.limits import QUANTILES, Limit, LimitSubject

#: Windows per median, and medians that the line is fitted to: together 4 h of 10 s windows.
SPAN_WINDOWS = 30
SPANS = 48
#: Fewer medians than this show no trend.
_SPANS_LEAST = 12
#: Half the width of a band that holds 90 %, in standard errors.
_BAND = 1.645
#: The limit as a ratio to the baseline, where the workload sets none.
LIMIT_RATIO = 2.0


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds from the newest window until the latency passes `limit` (seconds): at the earliest, most likely, at the
    latest. Infinite where it may never pass it; zero where it has already."""

    limit: float
    early: float
    likely: float
    late: float


class Trend:
    """Recent values of one latency over time, in bounded memory."""

    def __init__(self) -> None:
        self._span: list[float] = []
        self._ends: deque[float] = deque(maxlen=SPANS)
        self._levels: deque[float] = deque(maxlen=SPANS)

    def add(self, end: float, value: float) -> None:
        """Add a window's value, above zero, and its end in seconds."""
        self._span.append(math.log(value))
        if len(self._span) == SPAN_WINDOWS:
            self._ends.append(end)
            self._levels.append(median(self._span))
            self._span.clear()

    def forecast(self, limit: float) -> Forecast | None:
        """Forecast of the latency; None while too little is known, or when the latency does not rise."""
        if len(self._levels) < _SPANS_LEAST:
            return None
        now = self._ends[-1]
        times = np.array(self._ends) - now
        levels = np.array(self._levels)
        slope, level = (float(value) for value in np.polyfit(times, levels, 1))
        if slope <= 0:
            return None
        error = _slope_error(times, levels - (level + slope * times))
        rise = math.log(limit) - level
        if rise <= 0:
            return Forecast(limit, 0.0, 0.0, 0.0)
        slowest = slope - _BAND * error
        late = rise / slowest if slowest > 0 else math.inf
        return Forecast(limit, rise / (slope + _BAND * error), rise / slope, late)


def limit_for(operation: str | None, quantile: float | None, baseline: float, limits: Sequence[Limit]) -> float:
    """The lowest limit that the workload sets for a latency, in seconds, or twice its baseline where it sets none."""
    bounds = [
        limit.bound
        for limit in limits
        if limit.subject is LimitSubject.LATENCY
        and limit.bound is not None
        and not limit.part
        and limit.operation in (None, operation)
        and QUANTILES.get(limit.measure) == quantile
    ]
    return min(bounds, default=LIMIT_RATIO * baseline)


def _slope_error(times: NDArray[np.float64], residuals: NDArray[np.float64]) -> float:
    """Standard error of a line's slope, for residuals that are autocorrelated."""
    count = len(times)
    variance = float((residuals**2).sum()) / (count - 2)
    if variance == 0.0:
        return 0.0
    resemblance = float((residuals[1:] * residuals[:-1]).sum() / (residuals**2).sum())
    bounded = min(max(resemblance, 0.0), 0.9)
    spread = float(((times - times.mean()) ** 2).sum())
    return math.sqrt(variance / spread * (1 + bounded) / (1 - bounded))
