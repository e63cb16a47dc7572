"""Increases of counters between samples that do not fall on the edges of windows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.observer.increases import CounterIncreases, scraped_since
from cliffwatch.telemetry.prometheus import PrometheusAnswer

ONE = {"instance": "broker-1"}


def series(samples: dict[float, float], labels: dict[str, str] | None = None) -> PrometheusAnswer:
    times = np.array([round(at * 1000) for at in samples], dtype=np.int64)
    return PrometheusAnswer(labels or ONE, times, np.array(list(samples.values()), dtype=np.float64))


def until(answer: PrometheusAnswer, end: float) -> PrometheusAnswer:
    """The answer to a query at `end`."""
    known = answer.times <= end * 1000
    return PrometheusAnswer(answer.labels, answer.times[known], answer.values[known])


def test_an_increase_is_between_the_newest_samples_before_the_edges() -> None:
    counter = series({8.0: 100, 13.0: 130, 18.0: 190, 23.0: 200})
    counters = CounterIncreases()
    first = counters.in_window([until(counter, 20.0)], 10.0, 20.0, {})
    assert (first.total, first.age_seconds, first.span_seconds) == (90, 2.0, 10.0)
    second = counters.in_window([until(counter, 30.0)], 20.0, 30.0, {})
    assert (second.total, second.age_seconds, second.span_seconds) == (10, 7.0, 5.0)


def test_a_counter_that_was_reset_counts_from_nothing() -> None:
    found = CounterIncreases().in_window([series({9.0: 500, 12.0: 600, 15.0: 7, 18.0: 27})], 10.0, 20.0, {})
    assert found.total == 100 + 7 + 20


def test_a_sample_that_comes_late_counts_in_the_next_window() -> None:
    counters = CounterIncreases()
    assert counters.in_window([series({9.0: 0, 14.0: 5})], 10.0, 20.0, {}).total == 5
    # That of 19.0 was not there yet.
    assert counters.in_window([series({9.0: 0, 14.0: 5, 19.0: 9, 24.0: 20})], 20.0, 30.0, {}).total == 15


def test_a_series_without_a_new_sample_was_not_measured() -> None:
    counters = CounterIncreases()
    other = {"instance": "broker-2"}
    samples = [series({9.0: 1, 19.0: 2}), series({9.0: 1}, other)]
    assert set(counters.in_window(samples, 10.0, 20.0, {}).by_labels) == {frozenset(ONE.items())}
    assert counters.in_window([series({19.0: 2})], 20.0, 30.0, {}).by_labels == {}
    assert counters.in_window([], 30.0, 40.0, {}).by_labels == {}


def test_a_series_that_begins_counts_from_its_first_sample() -> None:
    assert CounterIncreases().in_window([series({12.0: 40, 17.0: 44})], 10.0, 20.0, {}).total == 4


def test_a_series_that_appears_between_scrapes_of_its_target_has_counted_from_nothing() -> None:
    errors, other = series({15.0: 3, 20.0: 5}), series({5.0: 0, 10.0: 9, 15.0: 20, 20.0: 30}, ONE | {"le": "+Inf"})
    once = series({15.0: 3})
    since = scraped_since([errors, other])
    assert CounterIncreases().in_window([errors], 10.0, 20.0, since).total == 5
    assert CounterIncreases().in_window([once], 10.0, 20.0, since).total == 3
    # Of another target nothing was scraped before, and its first sample may be of any age.
    elsewhere = series({5.0: 0, 10.0: 9}, {"instance": "broker-2"})
    assert CounterIncreases().in_window([errors], 10.0, 20.0, scraped_since([errors, elsewhere])).total == 2
    assert CounterIncreases().in_window([once], 10.0, 20.0, scraped_since([once, elsewhere])).by_labels == {}


def test_a_series_that_began_in_an_earlier_window_counts_from_there() -> None:
    errors, other = series({15.0: 3, 20.0: 5, 25.0: 9}), series({5.0: 0, 25.0: 9}, ONE | {"le": "+Inf"})
    counters = CounterIncreases()
    since = scraped_since([errors, other])
    assert counters.in_window([until(errors, 20.0)], 10.0, 20.0, since).total == 5
    assert counters.in_window([until(errors, 30.0)], 20.0, 30.0, since).total == 4
    # The first window of a run that begins later: what was before is none of it.
    assert CounterIncreases().in_window([errors], 20.0, 30.0, since).total == 4


def test_increases_over_a_long_hole_belong_to_no_window() -> None:
    counters = CounterIncreases()
    hole = series({9.0: 0, 43.0: 1000, 48.0: 1010})
    for start in (10.0, 20.0, 30.0):
        assert counters.in_window([until(hole, start + 10)], start, start + 10, {}).by_labels == {}
    found = counters.in_window([until(hole, 50.0)], 40.0, 50.0, {})
    assert (found.total, found.span_seconds) == (10, 5.0)


def test_with_one_scrape_a_window_each_increase_is_counted_wherever_it_falls() -> None:
    counters = CounterIncreases()
    # Scrapes come a moment early or late.
    counter = series({0.0: 0, 9.99: 10, 20.01: 20, 30.0: 30, 40.01: 40, 50.0: 50})
    found = [
        counters.in_window([until(counter, start + 10)], start, start + 10, {}).total
        for start in (0.0, 10.0, 20.0, 30.0, 40.0)
    ]
    assert found == [10, 0, 20, 0, 20]


@given(
    shares=st.lists(st.floats(min_value=0.05, max_value=1.0), min_size=2, max_size=60),
    steps=st.lists(st.integers(min_value=0, max_value=1000), min_size=60, max_size=60),
    window=st.sampled_from([5.0, 10.0, 60.0]),
)
def test_windows_together_have_all_that_was_counted(shares: list[float], steps: list[int], window: float) -> None:
    times = 1.0 + np.cumsum([0.0, *(share * window for share in shares)]).round(3)
    values = np.cumsum([0, *steps[: len(shares)]])
    counter = series(dict(zip(times.tolist(), values.tolist(), strict=True)))
    counters, edge, total = CounterIncreases(), 1.0, 0.0
    while edge < times[-1]:
        total += counters.in_window([until(counter, edge + window)], edge, edge + window, {}).total
        edge += window
    assert total == pytest.approx(float(values[-1]))
