"""Histograms of latencies from buckets of Prometheus."""

import numpy as np
import pytest

from cliffwatch.base.histogram import Histogram
from cliffwatch.observer.buckets import histogram_of, one_spelling
from cliffwatch.observer.increases import CounterIncreases, Labels
from cliffwatch.telemetry.prometheus import PrometheusAnswer


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


def test_values_above_every_bucket_bound_count_at_the_highest_bound() -> None:
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


def test_a_bound_that_an_upgrade_writes_otherwise_is_the_same_counter() -> None:
    def answer(bound: str, times: list[int], values: list[float]) -> PrometheusAnswer:
        return PrometheusAnswer({"le": bound, "job": "a"}, np.array(times), np.array(values), "latency_bucket")

    before, after = answer("1", [0, 5000], [1e6, 1e6 + 10]), answer("1.0", [10000, 15000], [1e6 + 20, 1e6 + 30])
    other = answer("+Inf", [0, 5000, 10000, 15000], [2e6, 2e6, 2e6, 2e6])
    answers = one_spelling([before, other, after])
    assert len(answers) == 2
    increases = CounterIncreases().in_window(answers, 5.0, 15.0, {("a", ""): 0})
    assert sorted(increases.by_labels.values()) == [0.0, 20.0]


@pytest.mark.parametrize("labels", [{"instance": "a"}, {"le": "much"}])
def test_a_bucket_without_a_valid_le_label_is_refused(labels: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"le|much"):
        histogram_of({frozenset(labels.items()): 1.0}, 1.0)


def test_nothing_counted_is_an_empty_histogram() -> None:
    assert histogram_of({}, 1.0)[0].count == 0
    assert histogram_of(buckets({"1": 0, "+Inf": 0}), 1.0)[0].count == 0
