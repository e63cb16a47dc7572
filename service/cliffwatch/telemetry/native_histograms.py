"""Samples of Prometheus' native histograms, as the cumulative buckets of a classic histogram.

The API writes each sample as the buckets that are not empty, `[rule, left, right, count]`, whose bounds may differ from
sample to sample, since an exporter lowers its resolution where there would be too many
(https://prometheus.io/docs/prometheus/latest/querying/api/#native-histograms). Counts of samples can be compared at
bounds that lie within no bucket of any of them: those of the lowest resolution.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Label of a classic histogram's buckets: their upper bound.
BOUND_LABEL = "le"
#: Bounds of two resolutions are powers of two and roots of them, computed apart.
_ROUNDING = 1e-9


def cumulative_buckets(samples: Sequence[dict[str, Any]]) -> dict[str, NDArray[np.float64]]:
    """Counts up to each bound, and up to "+Inf", in each of the samples of one series.

    Raises KeyError, TypeError or ValueError for what is no native histogram.
    """
    parsed = [_buckets(sample) for sample in samples]
    edges = np.unique(np.concatenate([np.zeros(0), *(buckets[:, :2].ravel() for buckets in parsed)]))
    edges = edges[np.isfinite(edges)]
    for buckets in parsed:
        edges = edges[~_are_within(edges, buckets)]
    table = np.array([_counts_up_to(edges, buckets) for buckets in parsed]).reshape(len(samples), len(edges))
    by_bound = {repr(float(bound)): table[:, place] for place, bound in enumerate(edges)}
    return by_bound | {"+Inf": np.array([float(sample["count"]) for sample in samples])}


def _buckets(sample: dict[str, Any]) -> NDArray[np.float64]:
    """Rows of lower bound, upper bound and count, ascending; a negative bound, of a latency, is 0."""
    rows = [(float(left), float(right), float(count)) for _, left, right, count in sample.get("buckets", ())]
    found = np.array(rows, dtype=np.float64).reshape(len(rows), 3)
    if not (np.diff(found[:, :2].ravel()) >= 0).all() or np.isnan(found).any():
        raise ValueError("buckets that are not in their order")
    found[:, :2] = np.maximum(found[:, :2], 0.0)
    return found


def _are_within(edges: NDArray[np.float64], buckets: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each edge lies within a bucket, and not at a bound of it."""
    lefts, rights = buckets[:, 0] * (1 + _ROUNDING), buckets[:, 1] * (1 - _ROUNDING)
    return np.asarray(((edges[:, None] > lefts) & (edges[:, None] < rights)).any(axis=1))


def _counts_up_to(edges: NDArray[np.float64], buckets: NDArray[np.float64]) -> NDArray[np.float64]:
    totals = np.concatenate([[0.0], np.cumsum(buckets[:, 2])])
    counts: NDArray[np.float64] = totals[np.searchsorted(buckets[:, 1], edges * (1 + _ROUNDING), side="right")]
    return counts
