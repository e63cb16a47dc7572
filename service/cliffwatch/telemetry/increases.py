"""Increases of counters over spans of time, and percentiles from the increases of histogram buckets.

Results come only from scraped samples: over a span that no two samples enclose, they are NaN. Percentiles are computed
from the buckets' increases over the span itself, never from other percentiles.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cliffwatch.telemetry.reader import Floats, Samples


def increase(samples: Samples, starts: Floats, ends: Floats, longest_seconds: float) -> tuple[Floats, Floats]:
    """Increase of a counter over each span, and the seconds that it covers, both NaN where unknown.

    Counted between the nearest samples that enclose the span, if these are at most `longest_seconds` apart. A fall of
    a counter counts as a restart from zero.
    """
    times, values = samples.times, samples.values
    result = np.full(len(starts), np.nan)
    seconds = np.full(len(starts), np.nan)
    if len(times) < 2:
        return result, seconds
    steps = np.diff(values)
    counted = np.concatenate([[0.0], np.cumsum(np.where(steps >= 0, steps, values[1:]))])
    before = np.searchsorted(times, starts + 1e-6, side="right") - 1
    after = np.searchsorted(times, ends - 1e-6, side="left")
    known = np.flatnonzero((before >= 0) & (after < len(times)) & (starts < ends))
    known = known[times[after[known]] - times[before[known]] <= longest_seconds + 1e-6]
    result[known] = counted[after[known]] - counted[before[known]]
    seconds[known] = times[after[known]] - times[before[known]]
    return result, seconds


def sum_of_increases(
    found: Sequence[Samples], starts: Floats, ends: Floats, longest_seconds: float
) -> tuple[Floats, Floats]:
    """Sum of the increases of several counters, and the most seconds that any one covers; NaN where one is unknown."""
    if not found:
        unknown = np.full(len(starts), np.nan)
        return unknown, unknown
    both = [increase(samples, starts, ends, longest_seconds) for samples in found]
    return np.sum([one[0] for one in both], axis=0), np.max([one[1] for one in both], axis=0)


def quantile(
    buckets: Sequence[Samples], q: float, starts: Floats, ends: Floats, longest_seconds: float
) -> NDArray[np.float64]:
    """q-quantile over each span, from the buckets of one histogram, or of several, whose counts are added.

    `buckets` are cumulative counters with the label `le`. Within a bucket it is interpolated linearly, as by
    PromQL's histogram_quantile; a value beyond the last finite bound is that bound. NaN where nothing was counted.
    """
    by_bound: dict[float, list[Samples]] = {}
    for samples in buckets:
        by_bound.setdefault(float(samples.labels["le"]), []).append(samples)
    bounds = np.array(sorted(by_bound))
    if len(bounds) < 2:
        return np.full(len(starts), np.nan)
    counts = np.array([sum_of_increases(by_bound[bound], starts, ends, longest_seconds)[0] for bound in bounds])
    # Buckets are read one after the other while requests complete: a wider one may lag behind by a few.
    cumulative = np.maximum.accumulate(counts, axis=0)
    total = cumulative[-1]
    rank = q * total
    place = np.argmax(cumulative >= rank, axis=0)
    spans = np.arange(len(starts))
    upper = bounds[place]
    lower = np.where(place > 0, bounds[np.maximum(place - 1, 0)], 0.0)
    below = np.where(place > 0, cumulative[np.maximum(place - 1, 0), spans], 0.0)
    inside = cumulative[place, spans] - below
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(np.isinf(upper), lower, lower + (upper - lower) * (rank - below) / inside)
    return np.where(total > 0, value, np.nan)
