"""Latency histograms: HdrHistogram, nanoseconds, 3 significant digits, 1 µs to 1 h.

The arithmetic and the codec are the `hdrhistogram` library's. This module wraps it so that all histograms have one
shape, percentiles are read from a numpy view (the library iterates over its counts in Python), and no value raises for
being out of range: a value over one hour is counted at one hour and in `overflow`.
"""

import base64
import math
import re
import weakref
import zlib
from collections.abc import Iterable, Mapping

import numpy as np
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray

LOWEST_NANOSECONDS = 1_000
HIGHEST_NANOSECONDS = 3_600 * 1_000_000_000
SIGNIFICANT_DIGITS = 3
#: The quantiles that windows, metrics and reports state.
QUANTILES = (0.5, 0.9, 0.99, 0.999, 0.9999)

#: A payload of this length inflates to at most 50 MB; the project's own payloads have a tenth of the length.
_SMALL_CHARACTERS = 64 * 1024
_INFLATED_LIMIT_BYTES = 64 * 1024**2
#: Maximum count of a histogram: no window has so many, and sums over 36 hours of such windows fit into 64 bits.
_COUNT_LIMIT = 2**48
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
#: Length of the header before the compressed part: a cookie and the part's length.
_COOKIE_BYTES = 8


def _bucket_limits() -> NDArray[np.int64]:
    """Highest nanosecond value that each counts index stands for (HdrHistogram's `highest equivalent value`)."""
    model = HdrHistogram(LOWEST_NANOSECONDS, HIGHEST_NANOSECONDS, SIGNIFICANT_DIGITS)
    return np.array(
        [model.get_highest_equivalent_value(model.get_value_from_index(index)) for index in range(model.counts_len)],
        dtype=np.int64,
    )


_LIMITS = _bucket_limits()
_LIMITS_SECONDS = _LIMITS / 1e9
#: Shape of histograms with the same buckets as here: number of buckets, the unit's power of two, and precision.
_SHAPE = (len(_LIMITS), int(math.log2(LOWEST_NANOSECONDS)), SIGNIFICANT_DIGITS)


def _without_cycle(hdr: HdrHistogram) -> HdrHistogram:
    """Break the library's reference cycle between a histogram and its encoder; returns the histogram.

    The cycle would hold 190 KB of counts until the garbage collector happens to run.
    """
    hdr.encoder.histogram = weakref.proxy(hdr)
    return hdr


def _require_modest(text: str) -> None:
    """Refuse a payload that decompresses to more than _INFLATED_LIMIT_BYTES; short ones cannot. Raises ValueError."""
    if len(text) <= _SMALL_CHARACTERS:
        return
    try:
        packed = base64.b64decode(text)[_COOKIE_BYTES:]
        inflating = zlib.decompressobj()
        inflating.decompress(packed, _INFLATED_LIMIT_BYTES)
    except (ValueError, zlib.error) as error:
        raise ValueError(f"not an HdrHistogram V2 payload: {error}") from error
    if inflating.unconsumed_tail or not inflating.eof:
        raise ValueError(f"not an HdrHistogram V2 payload: it has more than {_INFLATED_LIMIT_BYTES} bytes")


class Histogram:
    """Counts of latencies in nanoseconds. Merging adds counts; percentiles are read off, never averaged."""

    __slots__ = ("_encoded", "_hdr", "overflow")

    def __init__(self) -> None:
        self._hdr = _without_cycle(HdrHistogram(LOWEST_NANOSECONDS, HIGHEST_NANOSECONDS, SIGNIFICANT_DIGITS))
        self.overflow = 0
        #: The text that this was decoded from, unless it was changed: a window passes from engine to journal unchanged.
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
        _require_modest(text)
        try:
            other = _without_cycle(HdrHistogram.decode(text))
        except Exception as error:  # the library raises half a dozen unrelated types for damaged input
            raise ValueError(f"not an HdrHistogram V2 payload: {error}") from error
        counts = np.ctypeslib.as_array(other.counts)
        if float(counts.sum(dtype=np.float64)) > _COUNT_LIMIT:
            raise ValueError(f"not an HdrHistogram V2 payload: it counts more than {_COUNT_LIMIT} latencies")
        if unit_nanoseconds != 1 or (other.counts_len, other.unit_magnitude, other.significant_figures) != _SHAPE:
            histogram = cls()
            present = np.flatnonzero(counts)
            latencies = (other.get_value_from_index(int(index)) * unit_nanoseconds for index in present)
            values = [min(each, HIGHEST_NANOSECONDS + 1) for each in latencies]
            histogram.record_many(np.array(values, dtype=np.int64), counts[present])
            return histogram
        histogram = cls.__new__(cls)
        histogram._hdr, histogram.overflow = other, 0
        # The decoder ignores characters that are not base64, but a journal's line must not contain them.
        histogram._encoded = text if _BASE64.fullmatch(text) else None
        return histogram

    def encode(self) -> str:
        """Encode as HdrHistogram V2 compressed base64."""
        if self._encoded is not None:
            return self._encoded
        encoded: bytes | str = self._hdr.encode()
        return encoded.decode("ascii") if isinstance(encoded, bytes) else encoded

    def record(self, nanoseconds: int, count: int = 1) -> None:
        """Count a latency. Below 1 µs: at the library's resolution; above 1 h: clamped, and counted as overflow."""
        if count <= 0:
            return
        self._encoded = None
        if nanoseconds > HIGHEST_NANOSECONDS:
            self.overflow += count
            nanoseconds = HIGHEST_NANOSECONDS
        self._hdr.record_value(max(0, nanoseconds), count)

    def record_many(self, nanoseconds: NDArray[np.int64], counts: NDArray[np.int64] | None = None) -> None:
        """Count an array of latencies, each `counts` times (once where that is None), as `record` would."""
        over = nanoseconds > HIGHEST_NANOSECONDS
        weights = np.ones(len(nanoseconds), dtype=np.int64) if counts is None else counts
        present = weights > 0
        if not present.any():
            return
        self._encoded = None
        self.overflow += int(weights[over & present].sum())
        clamped = np.clip(nanoseconds[present], 0, HIGHEST_NANOSECONDS)
        np.add.at(self._counts(), np.searchsorted(_LIMITS, clamped), weights[present])
        self._hdr.total_count += int(weights[present].sum())
        self._hdr.min_value = min(self._hdr.min_value, int(clamped.min()))
        self._hdr.max_value = max(self._hdr.max_value, int(clamped.max()))

    def merge(self, other: "Histogram") -> None:
        # The library's own addition takes six times as long: it allows shapes that differ.
        self._encoded = None
        counts = self._counts()
        counts += other._counts()
        self._hdr.total_count += other.count
        self._hdr.min_value = min(self._hdr.min_value, other._hdr.min_value)
        self._hdr.max_value = max(self._hdr.max_value, other._hdr.max_value)
        self.overflow += other.overflow

    def remove(self, other: "Histogram") -> None:
        """Subtract a histogram that was merged before."""
        self._encoded = None
        counts = self._counts()
        counts -= other._counts()
        self._hdr.total_count -= other.count
        self.overflow -= other.overflow
        left = np.flatnonzero(counts)
        self._hdr.max_value = int(_LIMITS[left[-1]]) if len(left) else 0

    @property
    def count(self) -> int:
        return int(self._hdr.get_total_count())

    @property
    def max_seconds(self) -> float | None:
        """The largest latency, to the histogram's precision; None when nothing was counted."""
        return float(self._hdr.get_max_value()) / 1e9 if self.count else None

    def percentiles_seconds(self, quantiles: Iterable[float] = QUANTILES) -> list[float | None]:
        """Latency in seconds at each quantile (0…1), None when nothing was counted.

        At quantile 0.99 it is the smallest value that at least 99 % of the latencies do not exceed.
        """
        wanted = list(quantiles)
        if self.count == 0:
            return [None] * len(wanted)
        cumulative = np.cumsum(self._counts())
        total = int(cumulative[-1])
        ranks = np.maximum(1, np.ceil(np.array(wanted) * total - 1e-9)).astype(np.int64)
        values = _LIMITS[np.searchsorted(cumulative, ranks)]
        return [float(min(value, self._hdr.get_max_value())) / 1e9 for value in values]

    def cumulative_counts(self, limits_seconds: Iterable[float]) -> list[int]:
        """Number of latencies at or below each limit: the buckets of a Prometheus histogram."""
        cumulative = np.concatenate(([0], np.cumsum(self._counts())))
        limits = np.array([round(limit * 1e9) for limit in limits_seconds], dtype=np.int64)
        return [int(count) for count in cumulative[np.searchsorted(_LIMITS, limits, side="right")]]

    def sum_seconds(self) -> float:
        """The sum of all latencies, to the histogram's precision."""
        # Not np.dot: its threads would spin for milliseconds over this little work.
        return float((self._counts() * _LIMITS_SECONDS).sum())

    def _counts(self) -> NDArray[np.int64]:
        return np.ctypeslib.as_array(self._hdr.counts)
