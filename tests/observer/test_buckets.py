"""Histograms of latencies from buckets of Prometheus."""

import pytest

from cliffwatch.base.histogram import Histogram
from cliffwatch.observer.buckets import histogram_of
from cliffwatch.observer.increases import Labels


def buckets(cumulative: dict[str, float], **labels: str) -> dict[Labels, float]:
    return {frozenset((labels | {"le": bound}).items()): count for bound, count in cumulative.items()}


def quantile(histogram: Histogram, share: float) -> float:
    """In seconds."""
    (value,) = histogram.percentiles_seconds([share])
    assert value is not None
    return value


def test_percentiles_lie_where_promql_has_them() -> None:
    histogram, beyond = histogram_of(buckets({"0.001": 0, "0.01": 900, "0.1": 1000, "+Inf": 1000}), 1.0)
    assert (histogram.count, beyond) == (1000, 0)
    # histogram_quantile(0.5): 0.001 + 0.009 * 500 / 900; (0.95): 0.01 + 0.09 * 50 / 100.
    assert quantile(histogram, 0.5) == pytest.approx(0.006, rel=0.03)
    assert quantile(histogram, 0.95) == pytest.approx(0.055, rel=0.03)


def test_what_is_above_every_bound_counts_at_the_highest() -> None:
    histogram, beyond = histogram_of(buckets({"1": 5, "+Inf": 8}), 1e-3)
    assert (histogram.count, beyond) == (8, 3)
    assert quantile(histogram, 0.999) == pytest.approx(1e-3, rel=0.01)


def test_instances_are_added_up_whatever_their_bounds() -> None:
    one = buckets({"10": 4, "+Inf": 4}, instance="a")
    other = buckets({"20": 6, "40": 6, "+Inf": 6}, instance="b")
    histogram, _ = histogram_of(one | other, 1e-3)
    assert histogram.count == 10
    assert quantile(histogram, 0.999) == pytest.approx(20e-3, rel=0.1)


def test_bounds_are_numbers_however_they_are_written() -> None:
    histogram, _ = histogram_of(buckets({"5e-05": 1, "0.0001": 3, "1.0": 3, "+Inf": 3}), 1.0)
    assert histogram.count == 3
    assert quantile(histogram, 0.999) <= 1e-4


@pytest.mark.parametrize("labels", [{"instance": "a"}, {"le": "much"}])
def test_what_is_no_bucket_is_refused(labels: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"le|much"):
        histogram_of({frozenset(labels.items()): 1.0}, 1.0)


def test_nothing_counted_is_an_empty_histogram() -> None:
    assert histogram_of({}, 1.0)[0].count == 0
    assert histogram_of(buckets({"1": 0, "+Inf": 0}), 1.0)[0].count == 0
