"""When a drift will pass its limit, and how sure that is."""

import math
import random

import pytest

from cliffwatch.analysis.forecast import SPAN_WINDOWS, SPANS, Trend, limit_for
from cliffwatch.model.limits import parse_limit

WINDOW_SECONDS = 10.0
HOUR = 3600.0


def trend(
    growth_per_hour: float, noise: float = 0.0, resemblance: float = 0.0, seed: int = 1, hours: float = 6
) -> Trend:
    """Windows from 10 ms on that grow by this part an hour, with noise that resembles its past."""
    generator, found, deviation = random.Random(seed), Trend(), 0.0
    for index in range(round(hours * HOUR / WINDOW_SECONDS)):
        end = 1_790_000_000.0 + (index + 1) * WINDOW_SECONDS
        fresh = generator.gauss(0.0, noise)
        deviation = resemblance * deviation + math.sqrt(1 - resemblance**2) * fresh
        elapsed_hours = (index + 1) * WINDOW_SECONDS / HOUR
        found.add(end, 0.010 * (1 + growth_per_hour) ** elapsed_hours * math.exp(deviation))
    return found


def test_a_clean_drift_is_forecast_to_the_minute() -> None:
    # After 6 hours at 5 % an hour: 13.4 ms. To 20 ms: ln(20 / 13.4) / ln(1.05) hours.
    forecast = trend(0.05).forecast(0.020)
    assert forecast is not None
    hours = math.log(0.020 / (0.010 * 1.05**6)) / math.log(1.05)
    assert forecast.likely == pytest.approx(hours * HOUR, abs=300)
    assert forecast.early <= forecast.likely <= forecast.late
    assert forecast.late - forecast.early < 300


def test_nine_of_ten_forecasts_enclose_the_truth() -> None:
    truth = math.log(0.020 / (0.010 * 1.05**6)) / math.log(1.05) * HOUR
    inside = 0
    for seed in range(200):
        forecast = trend(0.05, noise=0.15, seed=seed).forecast(0.020)
        assert forecast is not None
        inside += forecast.early <= truth <= forecast.late
    assert 160 <= inside <= 198


def test_noise_that_resembles_its_past_makes_it_less_sure() -> None:
    def width(resemblance: float) -> float:
        forecasts = [trend(0.05, 0.1, resemblance, seed).forecast(0.020) for seed in range(10)]
        return sum(1 / forecast.early - 1 / forecast.late for forecast in forecasts if forecast is not None)

    assert width(0.98) > 2 * width(0.0)


def test_a_latency_that_does_not_rise_has_no_forecast() -> None:
    assert trend(-0.05).forecast(0.020) is None
    assert trend(0.0).forecast(0.020) is None


def test_a_rise_that_may_be_none_may_never_pass() -> None:
    forecasts = [trend(0.005, noise=0.5, seed=seed).forecast(0.020) for seed in range(20)]
    found = [forecast for forecast in forecasts if forecast is not None]
    assert found
    assert any(forecast.late == math.inf for forecast in found)


def test_the_forecast_of_a_limit_already_passed_is_due_now() -> None:
    forecast = trend(0.05).forecast(0.011)
    assert forecast is not None
    assert (forecast.early, forecast.likely, forecast.late) == (0.0, 0.0, 0.0)


def test_too_little_says_nothing_and_memory_is_bounded() -> None:
    assert trend(0.05, hours=0.9).forecast(0.020) is None
    long = trend(0.01, hours=36)
    assert len(long._levels) == SPANS
    assert len(long._span) < SPAN_WINDOWS


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ([], 0.008),
        (["p99 <= 20ms over any 10m"], 0.020),
        (["p99 <= 20ms over any 10m", "p99 <= 15ms over any 1h"], 0.015),
        (["p99 of append <= 9ms"], 0.009),
        (["p99 of part nvme3n1 <= 5ms", "p99 of any part <= 6ms", "p99 <= 20ms"], 0.020),
        (["p99 of sync <= 9ms", "p50 <= 1ms", "no cliff", "throughput >= 1MB/s"], 0.008),
    ],
)
def test_the_limit_is_the_workloads_or_twice_what_is_healthy(limits: list[str], expected: float) -> None:
    parsed = [parse_limit(limit) for limit in limits]
    assert limit_for("append", 0.99, 0.004, parsed) == pytest.approx(expected)
