"""Whether a small rise is named a step or a drift, by the shape of the hours around it, while the run goes on."""

import math
from types import ModuleType

import numpy as np
import pytest
from testkit.soaks import heavy, lognormal, queue

from cliffwatch.analysis.finding import Finding, FindingKind, Role, Series
from cliffwatch.analysis.online.channel import Channel
from cliffwatch.analysis.online.replay import replay
from cliffwatch.analysis.online.shape import is_gradual, sudden_since
from cliffwatch.analysis.span_lengths import BLOCK


def first_raised(generator: ModuleType, seed: int, event: str) -> Finding:
    """The first finding that is raised once the soak's degradation has begun."""
    soak = generator.make(seed, events=(event,))
    (truth,) = soak.truths
    found = replay(soak.series(), soak.samples(), list(soak.notices), soak.window_seconds)
    return next(each for each in found if each.detected is not None and each.detected >= truth.onset)


@pytest.mark.parametrize(
    ("generator", "seed"),
    [(lognormal, 201), (lognormal, 205), (lognormal, 216), (queue, 217), (queue, 219), (heavy, 203), (heavy, 219)],
)
def test_a_rise_that_goes_on_is_a_drift_from_the_first(generator: ModuleType, seed: int) -> None:
    """Its first tenth is as large as a step, and the blocks of one span before it are lower by as much."""
    assert first_raised(generator, seed, "drift").kind is FindingKind.DRIFT


@pytest.mark.parametrize(("generator", "seed"), [(queue, 200), (queue, 208), (queue, 236)])
def test_a_step_that_is_found_late_is_still_a_step(generator: ModuleType, seed: int) -> None:
    """Forty minutes of it are as far above the hours before as a drift would be."""
    assert first_raised(generator, seed, "step").kind is FindingKind.STEP


@pytest.mark.parametrize(("generator", "seed"), [(lognormal, 221), (lognormal, 225), (heavy, 231), (heavy, 232)])
def test_a_step_just_below_a_cliff_is_a_step(generator: ModuleType, seed: int) -> None:
    """In the noise of a few windows, a rise of a third is a rise of a half every now and then."""
    assert first_raised(generator, seed, "step").kind is FindingKind.STEP


@pytest.mark.parametrize("seed", [123, 134])
def test_a_level_that_a_step_came_back_to_is_no_drift(seed: int) -> None:
    """A step that mostly went away leaves the run above its baseline, and the daily swing on top of that."""
    soak = {123: heavy, 134: queue}[seed].make(seed)
    found = replay(soak.series(), soak.samples(), list(soak.notices), soak.window_seconds)
    assert FindingKind.RECOVERY in {each.kind for each in found}
    assert FindingKind.DRIFT not in {each.kind for each in found}


def channel_of(levels: list[float]) -> Channel:
    """A latency with these levels (logarithms), one for each block, and some noise."""
    channel, noise = Channel(Series("p99", Role.LATENCY)), np.random.default_rng(1)
    for window, level in enumerate(np.repeat(levels, BLOCK)):
        value = math.exp(level + 0.2 * noise.standard_normal())
        channel.add(value, window * 10.0, window * 10.0 + 10.0, None)
    return channel


def test_a_fall_is_no_step() -> None:
    assert sudden_since(channel_of([0.0] * 100 + [0.3] * 50)) == pytest.approx(50, abs=2)
    assert sudden_since(channel_of([0.3] * 50 + [0.0] * 100)) is None


def test_a_line_is_gradual_and_a_step_is_not() -> None:
    assert is_gradual(channel_of([0.0] * 100 + [0.006 * block for block in range(50)]))
    assert not is_gradual(channel_of([0.0] * 100 + [0.3] * 50))
