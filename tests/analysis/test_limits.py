"""How limits are written, and which spans break them."""

import numpy as np
import pytest

from cliffwatch.analysis.limit_spans import Breach, Tally, breaches
from cliffwatch.base.histogram import Histogram
from cliffwatch.model.limits import Limit, LimitSubject, parse_limit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p99 <= 20ms over any 10m", Limit("", LimitSubject.LATENCY, 0.02, "p99", over_seconds=600.0)),
        ("p99.9 of end_to_end <= 1.5s", Limit("", LimitSubject.LATENCY, 1.5, "p99.9", "end_to_end")),
        ("max<=250us  over any 1h30m", Limit("", LimitSubject.LATENCY, 0.00025, "max", over_seconds=5400.0)),
        ("write amplification <= 2", Limit("", LimitSubject.AMPLIFICATION, 2.0)),
        ("write amplification <= 1.5 over any 1h", Limit("", LimitSubject.AMPLIFICATION, 1.5, over_seconds=3600.0)),
        ("throughput >= 100 MB/s over any 1m", Limit("", LimitSubject.THROUGHPUT, 1e8, over_seconds=60.0)),
        ("p95 <= 20ms", Limit("", LimitSubject.LATENCY, 0.02, "p95")),
        ("mean of sync <= 5ms", Limit("", LimitSubject.LATENCY, 0.005, "mean", "sync")),
        ("operations >= 500/s over any 10m", Limit("", LimitSubject.OPERATIONS, 500.0, over_seconds=600.0)),
        ("errors <= 0.1 % over any 10m", Limit("", LimitSubject.ERRORS, 0.001, over_seconds=600.0)),
        ("isolated <= 3 over any 24h", Limit("", LimitSubject.ISOLATED, 3.0, over_seconds=86400.0)),
        ("recovery <= 5m after marks", Limit("", LimitSubject.RECOVERY, 300.0)),
        ("no cliff", Limit("", LimitSubject.FINDINGS, kind="cliff")),
        ("no degradation", Limit("", LimitSubject.FINDINGS, kind="degradation")),
    ],
)
def test_limits_are_understood(text: str, expected: Limit) -> None:
    found = parse_limit(text)
    assert found.text == " ".join(text.split())
    for name in ("subject", "bound", "measure", "operation", "kind", "over_seconds"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name)), name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("slowness <= 20ms", "is not a limit; write one such as `p99 <= 20ms over any 10m`"),
        ("p98 <= 20ms", "is not a limit; write `p99 <= 20ms`"),
        ("p99 < 20ms", "is not a limit; write `p99 <= 20ms`"),
        ("p99 >= 20ms", "is not a limit; write `p99 <= 20ms`"),
        ("p999 <= 3ms over any 1h", "write `p99.9 <= 3ms over any 1h`"),
        ("p(95)<200", "write `p95 <= 200ms`"),
        ("avg < 5ms", "write `mean <= 5ms`"),
        ("tps >= 500", "write `operations >= 500/s`"),
        ("IOPS > 1000", "write `operations >= 1000/s`"),
        ("bandwidth >= 100MB/s", "write `throughput >= 100MB/s`"),
        ("error rate < 1%", "write `errors <= 1%`"),
        ("stalls == 0", "write `no stall`"),
        ("recovery <= 5m", "write `recovery <= 5m after marks`"),
        ("operations >= 500", "'500' is not a rate; write operations a second, such as 500/s"),
        ("errors <= 0.001", "'0.001' is not a share; write one of all that were due, such as 0.1%"),
        ("p99 <= 20", "is not a duration; write a number with ms, s, m, h or d"),
        ("p99 <= 20ms over any 10", "over any '10' is not a duration"),
        ("p99 <= 0ms", "can never hold"),
        ("max <= 0us", "can never hold"),
        ("p99 <= 20ms over any 0s", "can never hold"),
        (
            "no slowness",
            "'slowness' is not a finding; write `no` and cliff, stall, shortfall, step, drift, spikes, recurring or ",
        ),
        ("write amplification <= 2x", "'2x' is not a number"),
        ("write amplification <= 0", "can never hold"),
        ("throughput >= 100MB", "'100MB' is not a rate; write a size a second, such as 100MB/s"),
        ("throughput >= 100/s", "is not a size"),
        ("", "is not a limit"),
    ],
)
def test_a_limit_that_cannot_be_understood_is_refused_with_what_would_be_right(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        parse_limit(text)
    assert words in str(refused.value)


def tallies(above: list[int], count: int = 100, missing: tuple[int, ...] = ()) -> list[Tally]:
    """Windows of 10 s with so many latencies above the bound."""
    return [
        Tally(index * 10.0, index * 10.0 + 10, 10.0, count, each)
        for index, each in enumerate(above)
        if index not in missing
    ]


def test_overlapping_spans_are_one_breach_that_begins_with_the_window_that_broke_it() -> None:
    above = [0] * 10 + [2, 0, 0, 9, 0, 0] + [0] * 10
    assert breaches(tallies(above), 0.99, 30.0) == [Breach(130.0, 140.0, 160.0, 110.0, 140.0, 0.03, 3)]
    assert breaches(tallies(above), 0.99, 10.0) == [
        Breach(100.0, 110.0, 110.0, 100.0, 110.0, 0.02, 1),
        Breach(130.0, 140.0, 140.0, 130.0, 140.0, 0.09, 1),
    ]
    assert breaches(tallies(above), 0.99, None) == []
    # A maximum is broken by each window that has a higher one.
    assert breaches(tallies(above), 1.0, None) == breaches(tallies(above), 0.99, 10.0)


def test_a_span_of_which_much_was_not_measured_is_not_judged() -> None:
    above = [0, 0, 9, 0, 0, 0, 0, 0, 0, 0]
    assert breaches(tallies(above, missing=(1, 3)), 0.99, 30.0) == []
    assert len(breaches(tallies(above, missing=(1,)), 0.99, 30.0)) == 1


def test_a_window_that_is_longer_than_the_span_is_one_by_itself() -> None:
    """fio reports nothing while a drive hangs, and then all of it at once."""
    healthy = [Tally(float(i), i + 1.0, 1.0, 100, 0) for i in range(10)]
    hung = Tally(10.0, 19.0, 9.0, 62, 62)
    after = [Tally(19.0 + i, 20.0 + i, 1.0, 100, 0) for i in range(10)]
    (breach,) = breaches([*healthy, hung, *after], 0.99, 5.0)
    assert (breach.start, breach.end, breach.until, breach.badness) == (10.0, 19.0, 19.0, 1.0)
    # What comes after it is judged as if it had not been.
    late = [Tally(29.0, 30.0, 1.0, 100, 100), *(Tally(30.0 + i, 31.0 + i, 1.0, 100, 0) for i in range(9))]
    first, second = breaches([*healthy, hung, *after, *late], 0.99, 5.0)
    assert (first.start, second.start) == (10.0, 29.0)


def test_counts_say_the_same_as_percentiles_of_merged_histograms() -> None:
    """Random windows, each with few or many latencies: every span against the percentile of what is merged."""
    noise = np.random.default_rng(7)
    bound, windows = 0.002, []
    for _ in range(80):
        values = noise.lognormal(-6.9 + noise.normal(0, 0.1), 0.3, int(noise.integers(1, 400)))
        histogram = Histogram()
        histogram.record_many(np.rint(values * 1e9).astype(np.int64))
        windows.append(histogram)
    counted = [
        Tally(index, index + 1.0, 1.0, each.count, each.count - each.cumulative_counts([bound])[0])
        for index, each in enumerate(windows)
    ]
    broken = []
    for start in range(76):
        merged = Histogram()
        for each in windows[start : start + 5]:
            merged.merge(each)
        (p99,) = merged.percentiles_seconds([0.99])
        assert p99 is not None
        broken.append(p99 > bound)
        assert bool(breaches(counted[start : start + 5], 0.99, None)) == broken[-1]
    assert 10 < sum(broken) < 66
