"""Latency histogram of a window, from the increases of a Prometheus histogram's buckets.

A bucket says how many latencies lie between its bounds, not where. They are spread evenly there, as PromQL's
`histogram_quantile` assumes (https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile), so
that a percentile is as exact as its bucket is narrow. What lies above the highest finite bound is counted at it.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import numpy as np

from cliffwatch.base.histogram import Histogram
from cliffwatch.observer.increases import Labels
from cliffwatch.telemetry.native_histograms import BOUND_LABEL
from cliffwatch.telemetry.prometheus import PrometheusAnswer

#: Values that stand for all latencies of one bucket.
_VALUES_PER_BUCKET = 32


def histogram_of(increases: Mapping[Labels, float], unit_seconds: float) -> tuple[Histogram, int]:
    """Histogram of all series together, and how many latencies lie above its highest finite bound.

    `unit_seconds`: the unit of the label `le`. Raises ValueError where a series has no such label, or no number in it.
    """
    counts: dict[tuple[float, float], float] = {}
    for buckets in _by_series(increases).values():
        bounds = sorted(buckets)
        for (low, below), (high, up_to) in pairwise([(0.0, 0.0), *((bound, buckets[bound]) for bound in bounds)]):
            # Buckets of one scrape are not always of one moment.
            counts[low, high] = counts.get((low, high), 0.0) + max(0.0, up_to - below)
    histogram = Histogram()
    beyond = 0
    spread = []
    for (low, high), count in sorted(counts.items()):
        latencies = round(count)
        if math.isinf(high):
            beyond += latencies
            high = low
        if latencies > 0:
            spread.append(_spread(low * unit_seconds, high * unit_seconds, latencies))
    if spread:
        histogram.record_many(*map(np.concatenate, zip(*spread, strict=True)))
    return histogram, beyond


def one_spelling(answers: Sequence[PrometheusAnswer]) -> list[PrometheusAnswer]:
    """Buckets with their bounds spelled alike: an upgrade may write "1.0" for what was "1" before
    (https://prometheus.io/docs/prometheus/latest/migration/#le-and-quantile-label-values), and one counter goes on."""
    found: dict[Labels, list[PrometheusAnswer]] = {}
    for answer in answers:
        labels = dict(answer.labels)
        with suppress(KeyError, ValueError):
            labels[BOUND_LABEL] = repr(float(labels[BOUND_LABEL]))
        found.setdefault(frozenset(labels.items()), []).append(answer)
    return [_joined(dict(labels), same) for labels, same in found.items()]


def _joined(labels: dict[str, str], same: list[PrometheusAnswer]) -> PrometheusAnswer:
    times = np.concatenate([answer.times for answer in same])
    values = np.concatenate([answer.values for answer in same])
    times, first = np.unique(times, return_index=True)
    return replace(same[0], labels=labels, times=times, values=values[first])


def _by_series(increases: Mapping[Labels, float]) -> dict[Labels, dict[float, float]]:
    """Cumulative increase by upper bound, for each series of buckets."""
    series: dict[Labels, dict[float, float]] = {}
    for labels, increase in increases.items():
        bounds = [value for name, value in labels if name == BOUND_LABEL]
        if not bounds:
            raise ValueError(f"a bucket has no label {BOUND_LABEL!r}: {dict(labels)}")
        rest = frozenset(pair for pair in labels if pair[0] != BOUND_LABEL)
        series.setdefault(rest, {})[float(bounds[0])] = increase
    return series


def _spread(low_seconds: float, high_seconds: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nanoseconds and counts of `count` latencies, spread evenly between two bounds."""
    values = min(count, _VALUES_PER_BUCKET)
    share, rest = divmod(count, values)
    middles = low_seconds + (high_seconds - low_seconds) * (np.arange(values) + 0.5) / values
    return np.rint(middles * 1e9).astype(np.int64), np.full(values, share) + (np.arange(values) < rest)
