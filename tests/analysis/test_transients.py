"""What a run came back from says how long the next rise may last, and when one is due."""

import math

import pytest

from cliffwatch.analysis.online.excursion import Excursions

THREEFOLD = math.log(3)
LENGTH = 12


def compacting(period: int = 100, count: int = 8) -> Excursions:
    """A run whose compaction triples client's and device's latency for `LENGTH` windows at a time."""
    excursions = Excursions()
    for turn in range(count):
        excursions.learn(turn * period, LENGTH, THREEFOLD, THREEFOLD)
    return excursions


def test_a_rise_when_compaction_is_due_has_to_outlast_it() -> None:
    assert compacting().to_outlast(800, THREEFOLD, THREEFOLD) > LENGTH


def test_a_rise_when_none_is_due_has_to_outlast_nothing() -> None:
    assert compacting().to_outlast(850, THREEFOLD, THREEFOLD) == 0


@pytest.mark.parametrize("early", [13, 17])
def test_a_little_out_of_turn_is_still_compaction(early: int) -> None:
    assert compacting().to_outlast(800 - early, THREEFOLD, THREEFOLD) > LENGTH


def test_a_restart_in_between_is_none_of_those_that_keep_a_period() -> None:
    excursions = compacting()
    excursions.learn(770, 40, math.log(10), math.log(1.1))
    assert excursions.to_outlast(800, THREEFOLD, THREEFOLD) > LENGTH
    assert excursions.to_outlast(850, THREEFOLD, THREEFOLD) == 0
