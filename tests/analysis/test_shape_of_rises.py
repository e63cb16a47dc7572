"""Whether a small rise is named a step or a drift, by the shape of the hours around it, while the run goes on."""

from types import ModuleType

import pytest
from testkit.soaks import heavy, lognormal, queue

from cliffwatch.analysis.finding import Finding, FindingKind
from cliffwatch.analysis.online.replay import replay


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
