"""Latency histograms: HdrHistogram, nanoseconds, 3 significant digits, 1 µs to 1 h.

All histograms have one shape. One that was decoded has only the counts that are not zero, some hundreds, and keeps its
text: a window passes from engine to journal without another copy of 24,000 counts. No value raises for being out of
range: a value over one hour is counted at one hour and in `overflow`.
"""

import re
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from cliffwatch.base.histogram_codec import Integers, Shape, decoded, encoded

LOWEST_NANOSECONDS = 1_000
HIGHEST_NANOSECONDS = 3_600 * 1_000_000_000
SIGNIFICANT_DIGITS = 3
#: The quantiles that windows, metrics and reports state.
QUANTILES = (0.5, 0.9, 0.99, 0.999, 0.9999)

Indices = NDArray[np.int32]
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_SHAPE = Shape.of(LOWEST_NANOSECONDS, SIGNIFICANT_DIGITS)
#: Highest nanosecond value that each index of the counts stands for (HdrHistogram's `highest equivalent value`).
_LIMITS: Integers = np.array(
    [_SHAPE.highest_at(index) for index in range(_SHAPE.index_of_last(HIGHEST_NANOSECONDS) + 1)], dtype=np.int64
)
_LIMITS_SECONDS = _LIMITS / 1e9


class Histogram:
    """Counts of latencies in nanoseconds. Merging adds counts; percentiles are read off, never averaged."""

    __slots__ = ("_encoded", "_every", "_present", "overflow")

    def __init__(self) -> None:
        #: All counts by index; None while nothing was added to a decoded or empty histogram, which has `_present`.
        self._every: Integers | None = None
        #: Indices of the counts above zero, ascending, and these counts.
        self._present: tuple[Indices, Integers] = (np.zeros(0, np.int32), np.zeros(0, np.int64))
        self.overflow = 0
        #: The text that this was decoded from, unless it was changed.
        self._encoded: str | None = None

    @classmethod
    def from_values(cls, counts_by_nanoseconds: Mapping[int, int] | Iterable[tuple[int, int]]) -> "Histogram":
        """Make a histogram of (nanoseconds, count) pairs."""
        histogram = cls()
        pairs = counts_by_nanoseconds.items() if isinstance(counts_by_nanoseconds, Mapping) else counts_by_nanoseconds
        for nanoseconds, count in pairs:
            histogram.record(nanoseconds, count)
        return histogram

    @classmethod
    def decode(cls, text: str, unit_nanoseconds: int = 1) -> "Histogram":
        """Decode HdrHistogram V2 compressed base64 (`HISTFAAA…`) of any range, precision and unit.

        Values over one hour are counted at one hour and as overflow. Raises ValueError when the text is not such a
        histogram.
        """
        payload = decoded(text)
        histogram = cls()
        is_alike = payload.shape == _SHAPE and unit_nanoseconds == 1
        if not is_alike or (len(payload.indices) and payload.indices[-1] >= len(_LIMITS)):
            latencies = (payload.shape.lowest_at(index) * unit_nanoseconds for index in payload.indices.tolist())
            values = [min(each, HIGHEST_NANOSECONDS + 1) for each in latencies]
            histogram.record_many(np.array(values, dtype=np.int64), payload.counts)
            return histogram
        histogram._present = payload.indices.astype(np.int32), payload.counts
        # The decoder ignores characters that are not base64, but a journal's line must not contain them.
        histogram._encoded = text if _BASE64.fullmatch(text) else None
        return histogram

    @classmethod
    def sum_of(cls, *histograms: "Histogram") -> "Histogram":
        """Sum of histograms, which stay as they are."""
        found = cls()
        for each in histograms:
            found.merge(each)
        return found

    def encode(self) -> str:
        """Encode as HdrHistogram V2 compressed base64."""
        if self._encoded is not None:
            return self._encoded
        return encoded(*self._above_zero(), LOWEST_NANOSECONDS, HIGHEST_NANOSECONDS, SIGNIFICANT_DIGITS)

    def record(self, nanoseconds: int, count: int = 1) -> None:
        """Count a latency. Below 1 µs: at the histogram's resolution; above 1 h: clamped, and counted as overflow."""
        if count <= 0:
            return
        if nanoseconds > HIGHEST_NANOSECONDS:
            self.overflow += count
            nanoseconds = HIGHEST_NANOSECONDS
        self._changed()[np.searchsorted(_LIMITS, max(0, nanoseconds))] += count

    def record_many(self, nanoseconds: Integers, counts: Integers | None = None) -> None:
        """Count an array of latencies, each `counts` times (once where that is None), as `record` would."""
        over = nanoseconds > HIGHEST_NANOSECONDS
        weights = np.ones(len(nanoseconds), dtype=np.int64) if counts is None else counts
        present = weights > 0
        if not present.any():
            return
        self.overflow += int(weights[over & present].sum())
        clamped = np.clip(nanoseconds[present], 0, HIGHEST_NANOSECONDS)
        np.add.at(self._changed(), np.searchsorted(_LIMITS, clamped), weights[present])

    def merge(self, other: "Histogram") -> None:
        indices, counts = other._above_zero()
        self._changed()[indices] += counts
        self.overflow += other.overflow

    def remove(self, other: "Histogram") -> None:
        """Subtract a histogram that was merged before."""
        indices, counts = other._above_zero()
        self._changed()[indices] -= counts
        self.overflow -= other.overflow

    @property
    def count(self) -> int:
        return int((self._present[1] if self._every is None else self._every).sum())

    @property
    def max_seconds(self) -> float | None:
        """The largest latency, to the histogram's precision; None when nothing was counted."""
        indices, _ = self._above_zero()
        return float(_LIMITS[indices[-1]]) / 1e9 if len(indices) else None

    def percentiles_seconds(self, quantiles: Iterable[float] = QUANTILES) -> list[float | None]:
        """Latency in seconds at each quantile (0…1), None when nothing was counted.

        At quantile 0.99 it is the smallest value that at least 99 % of the latencies do not exceed.
        """
        wanted = list(quantiles)
        indices, counts = self._above_zero()
        if not len(indices):
            return [None] * len(wanted)
        cumulative = np.cumsum(counts)
        ranks = np.maximum(1, np.ceil(np.array(wanted) * int(cumulative[-1]) - 1e-9)).astype(np.int64)
        values = _LIMITS[indices[np.searchsorted(cumulative, ranks)]]
        return [float(value) / 1e9 for value in values]

    def cumulative_counts(self, limits_seconds: Iterable[float]) -> list[int]:
        """Number of latencies at or below each limit: the buckets of a Prometheus histogram."""
        indices, counts = self._above_zero()
        cumulative = np.concatenate(([0], np.cumsum(counts)))
        limits = np.array([round(limit * 1e9) for limit in limits_seconds], dtype=np.int64)
        below = np.searchsorted(indices, np.searchsorted(_LIMITS, limits, side="right"))
        return [int(count) for count in cumulative[below]]

    def sum_seconds(self) -> float:
        """The sum of all latencies, to the histogram's precision."""
        indices, counts = self._above_zero()
        # Not np.dot: its threads would spin for milliseconds over this little work.
        return float((counts * _LIMITS_SECONDS[indices]).sum())

    def _above_zero(self) -> tuple[Indices, Integers]:
        """Indices of the counts above zero, ascending, and these counts."""
        if self._every is None:
            return self._present
        indices = np.flatnonzero(self._every)
        return indices.astype(np.int32), self._every[indices]

    def _changed(self) -> Integers:
        """All counts by index, to be changed."""
        self._encoded = None
        if self._every is None:
            indices, counts = self._present
            self._every = np.zeros(len(_LIMITS), np.int64)
            self._every[indices] = counts
            self._present = (indices[:0], counts[:0])
        return self._every
