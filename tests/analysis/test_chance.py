"""Events at independent times are seldom called recurrent; even ones, and too many, are."""

import random

import pytest

from cliffwatch.analysis.chance import chance_of_number, chance_of_spacing, is_recurrent

WINDOW = 10.0
HOUR = 3600.0


def poisson(seed: int, per_day: float, hours: float) -> list[float]:
    chance, at, starts = random.Random(seed), 0.0, list[float]()
    while (at := at + chance.expovariate(per_day / 24 / HOUR)) < hours * HOUR:
        starts.append(at)
    return starts


@pytest.mark.parametrize(("per_day", "share"), [(4.0, 0.015), (9.0, 0.03)])
def test_independent_events_seldom_recur(per_day: float, share: float) -> None:
    """Judged at each event of 36 hours, as detection does."""
    runs = [poisson(seed, per_day, 36) for seed in range(400)]
    called = [any(is_recurrent(starts[:count], WINDOW) for count in range(1, len(starts) + 1)) for starts in runs]
    assert sum(called) <= share * len(runs)


@pytest.mark.parametrize("distance", [62 * WINDOW, HOUR, 6 * HOUR])
def test_equal_distances_recur_from_the_fifth_event_on(distance: float) -> None:
    starts = [index * distance for index in range(5)]
    assert is_recurrent(starts, WINDOW)
    assert not is_recurrent(starts[:3], WINDOW)


def test_events_in_neighbouring_windows_are_one() -> None:
    assert not is_recurrent([index * 2 * WINDOW for index in range(6)], WINDOW)


@pytest.mark.parametrize("count", [3, 6, 11])
def test_the_chance_of_a_spacing_is_the_share_of_random_spacings_within_it(count: int) -> None:
    """Against simulation, with bounds that catch a part of the random spacings: 0.6 to 1.6 times an equal distance."""
    chance = random.Random(count)
    within = 0
    for _ in range(20_000):
        cuts = sorted(chance.random() for _ in range(count - 1))
        pieces = [after - before for before, after in zip([0.0, *cuts], [*cuts, 1.0], strict=True)]
        within += 0.6 / count <= min(pieces) and max(pieces) <= 1.6 / count
    # The same bounds as distances: one of each, and the rest equal.
    rest = (1 - 2.2 / count) / (count - 2)
    distances = [0.6 / count, *([rest] * (count - 2)), 1.6 / count]
    starts = [sum(distances[:index]) for index in range(count + 1)]
    assert chance_of_spacing(starts, 0.0) == pytest.approx(within / 20_000, abs=0.012)


def test_the_chance_of_a_number_is_the_tail_of_a_poisson_distribution() -> None:
    # Twelve a day for two hours: a mean of one; four more than the first.
    starts = [0.0, 1000.0, 2000.0, 3000.0, 7190.0]
    assert chance_of_number(starts, WINDOW) == pytest.approx(0.0189882, rel=1e-4)
