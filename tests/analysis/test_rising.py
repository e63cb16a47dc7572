"""A rise that goes on is distinguished from a daily swing of a run that is level or improves."""

import numpy as np
import pytest
from testkit.soaks.soak import Column

from cliffwatch.analysis.online.rising import fit_rising
from cliffwatch.analysis.thresholds import JOINT_DRIFT_BY_SWING

HALVES_A_DAY = 48


def swing(count: int, hour: float, skew: float = 0.0) -> Column:
    """Logarithms of a level that swings by 10 % a day."""
    angle = 2 * np.pi * (np.arange(count) / HALVES_A_DAY + hour / 24)
    return np.asarray(np.log(1 + 0.1 * np.sin(angle + skew * np.sin(angle))))


def noise(count: int) -> Column:
    return np.random.default_rng(count).normal(0, 0.01, count)


@pytest.mark.parametrize("count", [24, 48, 72])
@pytest.mark.parametrize("start", [4, 12])
def test_a_rise_that_goes_on_is_no_swing_and_its_start_is_placed(count: int, start: int) -> None:
    rise = 0.5 * np.clip(np.arange(count) - start, 0, None) / (count - start)
    found = fit_rising(rise + noise(count), HALVES_A_DAY)
    assert found is not None
    assert found.by_swing > JOINT_DRIFT_BY_SWING
    assert abs(found.start - start) <= 3
    assert found.rise == pytest.approx(0.5, abs=0.07)


@pytest.mark.parametrize("improvement", [0.0, 0.2])
@pytest.mark.parametrize("hour", range(0, 24, 3))
@pytest.mark.parametrize("count", [16, 36, 60])
def test_a_daily_swing_is_no_rise_whatever_its_hour_and_whether_the_run_improves(
    count: int, hour: int, improvement: float
) -> None:
    levels = swing(count, hour, 0.4) - improvement * np.arange(count) / count + noise(count)
    found = fit_rising(levels, HALVES_A_DAY)
    assert found is None or found.by_swing < JOINT_DRIFT_BY_SWING or found.rise < np.log(1.17)


def test_a_falling_series_has_no_rise_and_too_few_points_have_no_fit() -> None:
    found = fit_rising(-0.01 * np.arange(40.0), HALVES_A_DAY)
    assert found is None or found.rise < 1e-9
    assert fit_rising(0.1 * np.arange(7.0), HALVES_A_DAY) is None
