"""A drift is one finding, from where it began, however unevenly it rises."""

from types import ModuleType

import numpy as np
import pytest
from testkit.soaks import heavy, lognormal, queue
from testkit.soaks.soak import Soak

from cliffwatch.analysis.finding import Finding, FindingKind
from cliffwatch.analysis.offline.ramps import joint_start
from cliffwatch.analysis.online.replay import replay
from cliffwatch.analysis.run_analysis import analysis

HOUR = 3600.0
#: Entries of ten minutes in a day.
DAY = 144.0


def online(soak: Soak) -> list[Finding]:
    return replay(soak.series(), soak.samples(), list(soak.notices), soak.window_seconds)


def reported(soak: Soak) -> list[Finding]:
    return analysis(soak.series(), soak.samples(), list(soak.notices), soak.window_seconds)


@pytest.mark.parametrize(
    ("generator", "seed"), [(lognormal, 416), (lognormal, 439), (queue, 428), (queue, 440), (heavy, 417)]
)
def test_a_drift_that_rose_fastest_in_one_place_has_no_step_in_it(generator: ModuleType, seed: int) -> None:
    soak = generator.make(seed)
    (found,), (truth,) = reported(soak), soak.truths
    assert (found.kind, truth.kind) == (FindingKind.DRIFT, FindingKind.DRIFT)
    assert found.onset == pytest.approx(truth.onset, abs=2 * HOUR)


@pytest.mark.parametrize(("generator", "seed"), [(queue, 403), (queue, 421), (heavy, 413)])
def test_a_step_stays_one(generator: ModuleType, seed: int) -> None:
    soak = generator.make(seed)
    (found,), (truth,) = reported(soak), soak.truths
    assert truth.kind is FindingKind.STEP
    assert found.onset == pytest.approx(truth.onset, abs=60)


def test_a_device_shows_better_than_a_noisy_client_where_a_drift_began() -> None:
    """The client is back where it was for an hour; the device is not, so that the drift is not over either."""
    soak = heavy.make(426)
    (truth,) = soak.truths
    for (found,) in (online(soak), reported(soak)):
        assert (found.kind, found.until) == (FindingKind.DRIFT, None)
    assert found.onset == pytest.approx(truth.onset, abs=HOUR / 2)


def test_ten_better_minutes_do_not_end_a_drift() -> None:
    (found,) = online(heavy.make(448))
    assert (found.kind, found.until) == (FindingKind.DRIFT, None)


def test_a_drift_whose_onset_was_raised_earlier_than_the_whole_run_shows_it_is_one_finding() -> None:
    soak = heavy.make(414)
    (raised,), (found,) = online(soak), reported(soak)
    assert raised.kind is found.kind is FindingKind.DRIFT
    assert raised.onset < found.onset - 40 * 60


def test_a_rise_that_came_back_is_no_drift() -> None:
    """A run that improves all along, and had slow hours in between."""
    assert [each.kind for each in reported(lognormal.make(447))] == [FindingKind.SPIKES]


def test_columns_begin_to_rise_where_the_least_noisy_one_does() -> None:
    noise = np.random.default_rng(1)
    rise = np.clip((np.arange(100) - 40) / 40, 0, 1)
    quiet = rise + 0.02 * noise.standard_normal(100)
    wavering = rise + np.where((np.arange(100) >= 35) & (np.arange(100) < 55), -0.3, 0.0)
    assert joint_start([wavering], 80, 12, DAY) > 45
    assert joint_start([wavering, quiet], 80, 12, DAY) == pytest.approx(40, abs=3)


def test_a_rise_begins_after_the_upward_half_of_a_daily_swing_and_not_in_it() -> None:
    at = np.arange(160)
    swing = -0.09 * np.cos(2 * np.pi * at / DAY)
    noise = 0.01 * np.random.default_rng(2).standard_normal(160)
    rise = 0.3 * np.clip((at - 60) / 40, 0, 1)
    assert joint_start([rise + swing + noise], 100, 12, DAY) == pytest.approx(60, abs=6)
    assert joint_start([rise + noise], 100, 12, DAY) == pytest.approx(60, abs=6)
