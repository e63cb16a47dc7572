"""The percentile curve: what is drawn is read off merged histograms, and ends at the highest latency."""

import re
from math import log10

import pytest

from cliffwatch.base.histogram import Histogram
from cliffwatch.report.charts.percentile_curve import WHOLE_LOAD, curves_of, drawn
from cliffwatch.report.latency import LatencyGroup

MILLISECOND = 1_000_000


def histogram(*milliseconds: float) -> Histogram:
    return Histogram.from_values((int(value * MILLISECOND), 1) for value in milliseconds)


def lines_in(svg: str) -> dict[str, list[tuple[float, float]]]:
    """Points of each curve, by its class."""
    return {
        name: [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path)]
        for name, path in re.findall(r'class="curve curve-(\w+)" d="M([^"]+)"', svg)
    }


def test_baseline_and_soak_are_merged_over_their_hours_and_the_warm_up_is_left_out() -> None:
    groups = [
        LatencyGroup("warm_up", 0, {"publish": histogram(500)}),
        LatencyGroup("baseline", 0, {"publish": histogram(1, 2)}),
        LatencyGroup("soak", 0, {"publish": histogram(3)}),
        LatencyGroup("soak", 1, {"publish": histogram(4, 5), "sync": histogram(7)}),
        LatencyGroup("warm_up", 0, {"only": histogram(9, 9)}),
    ]
    counts = {name: {phase: each.count for phase, each in curves.items()} for name, curves in curves_of(groups).items()}
    assert counts == {"publish": {"baseline": 2, "soak": 3}, "sync": {"soak": 1}, "only": {WHOLE_LOAD: 2}}


def test_a_curve_goes_through_the_percentiles_and_ends_at_the_maximum() -> None:
    soak = histogram(*(0.9 * number for number in range(2, 10_002)))
    svg = drawn({"baseline": histogram(*[1.0] * 100), "soak": soak})
    assert svg is not None
    lines = lines_in(svg)
    low, high = -3, 1
    for place, y in lines["soak"]:
        nines = place / 1000 * 4
        seconds = 10 ** (high - (high - low) * y / 180)
        quantile = 1 - 10**-nines
        (expected,) = soak.percentiles_seconds([quantile])
        assert expected is not None
        assert seconds == pytest.approx(expected, rel=0.03), quantile
    assert lines["soak"][-1][0] == 1000.0
    assert lines["baseline"][-1][0] == pytest.approx(500.0)
    assert {y for _, y in lines["baseline"]} == {180.0}
    ticks = dict(re.findall(r'<span[^>]* style="left: ([\d.]+)%">(p[\d.]+)</span>', svg))
    assert ticks == {f"{100 * log10(2) / 4:.1f}": "p50", "25.0": "p90", "50.0": "p99", "75.0": "p99.9"}
    assert re.findall(r'px">([^<]+)</span>', svg) == ["1 ms", "10 ms", "100 ms", "1 s", "10 s"]


def test_latencies_from_nanoseconds_to_hours_have_an_axis() -> None:
    svg = drawn({"soak": histogram(0.000_001, 3_600_000)})
    assert svg is not None
    assert len(re.findall(r'px">', svg)) <= 8
    assert all(0 <= y <= 180 for _, y in lines_in(svg)["soak"])
    assert drawn({"soak": histogram(4.0, 4.0)}) is not None


def test_one_latency_is_no_curve() -> None:
    assert drawn({WHOLE_LOAD: histogram(1)}) is None
    assert drawn({}) is None
