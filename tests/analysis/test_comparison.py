"""A run beside earlier runs: intervals hold as often as they say, and a verdict needs enough runs."""

import math
import random

import pytest

from cliffwatch.analysis.comparison import WORSE_FROM, Outcome, ratio_to_earlier, runs_needed, together

MILLISECOND = 1e-3


@pytest.mark.parametrize(("earlier", "spread"), [(2, 0.02), (3, 0.1), (8, 0.3)])
def test_the_true_ratio_is_in_the_interval_19_times_of_20(earlier: int, spread: float) -> None:
    """Runs whose p99 spreads log-normally, after a change that made them slower by a known factor."""
    generator, truth, trials = random.Random(earlier), 1.3, 4000

    def run(level: float) -> float:
        return level * math.exp(generator.gauss(0, spread))

    inside = 0
    for _ in range(trials):
        before = [run(4 * MILLISECOND) for _ in range(earlier)]
        found = ratio_to_earlier(run(truth * 4 * MILLISECOND), before, is_worse_above=True)
        inside += found.low <= truth <= found.high
    # Three standard errors of a share of 4,000.
    assert inside / trials == pytest.approx(0.95, abs=0.0104)


def test_equal_runs_are_seldom_called_worse_and_slow_ones_seldom_not_worse() -> None:
    generator = random.Random(7)
    outcomes: dict[float, list[Outcome]] = {1.0: [], 1.5: []}
    for truth, found in outcomes.items():
        for _ in range(2000):
            one, *before = (math.exp(generator.gauss(0, 0.05)) for _ in range(6))
            found.append(ratio_to_earlier(truth * one, before, is_worse_above=True).outcome)
    assert outcomes[1.0].count(Outcome.WORSE) <= 2
    assert outcomes[1.0].count(Outcome.NOT_WORSE) > 1300
    assert outcomes[1.5].count(Outcome.NOT_WORSE) == 0
    assert outcomes[1.5].count(Outcome.WORSE) > 1900


def test_the_interval_is_that_of_one_more_value_by_students_t() -> None:
    """By hand: logarithms -0.1, 0 and 0.1 deviate by 0.1; t of 2 degrees of freedom is 4.302653 at 97.5 %."""
    found = ratio_to_earlier(1.1, [math.exp(-0.1), 1.0, math.exp(0.1)], is_worse_above=True)
    half = 4.302653 * 0.1 * math.sqrt(4 / 3)
    assert found.ratio == pytest.approx(1.1)
    assert found.low == pytest.approx(1.1 * math.exp(-half), rel=1e-5)
    assert found.high == pytest.approx(1.1 * math.exp(half), rel=1e-5)


@pytest.mark.parametrize(
    ("value", "earlier", "is_worse_above", "outcome"),
    [
        (1.19, [1.0, 1.0], True, Outcome.NOT_WORSE),
        (1.21, [1.0, 1.0], True, Outcome.WORSE),
        (1 / 1.19, [1.0, 1.0], False, Outcome.NOT_WORSE),
        (1 / 1.21, [1.0, 1.0], False, Outcome.WORSE),
        (2.0, [1.0, 1.0], False, Outcome.NOT_WORSE),
        (1.0, [0.9, 1.1], True, Outcome.INCONCLUSIVE),
        (3.0, [1.0, 2.0], True, Outcome.INCONCLUSIVE),
    ],
)
def test_worse_begins_at_a_ratio_and_needs_proof(
    value: float, earlier: list[float], is_worse_above: bool, outcome: Outcome
) -> None:
    assert WORSE_FROM == 1.2
    assert ratio_to_earlier(value, earlier, is_worse_above=is_worse_above).outcome is outcome


def test_it_says_how_many_runs_would_tell() -> None:
    spread = [0.95, 1.0, 1.05]
    found = ratio_to_earlier(1.0, spread, is_worse_above=True)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.runs_needed == 4
    far_apart = ratio_to_earlier(1.0, [0.2, 1.0, 5.0], is_worse_above=True)
    assert (far_apart.outcome, far_apart.runs_needed) == (Outcome.INCONCLUSIVE, None)


@pytest.mark.parametrize(
    ("earlier", "needed"), [([1.0, 1.0], 2), ([0.98, 1.02], 3), ([0.95, 1.0, 1.05], 4), ([0.2, 1.0, 5.0], None)]
)
def test_it_is_known_before_a_run_how_many_would_show_that_it_is_not_worse(
    earlier: list[float], needed: int | None
) -> None:
    assert runs_needed(earlier) == needed


def test_one_worse_figure_makes_the_run_worse() -> None:
    not_worse, worse, unknown = Outcome.NOT_WORSE, Outcome.WORSE, Outcome.INCONCLUSIVE
    assert together([not_worse, unknown, worse]) is worse
    assert together([not_worse, unknown]) is unknown
    assert together([not_worse, not_worse]) is not_worse
    assert together([]) is unknown
