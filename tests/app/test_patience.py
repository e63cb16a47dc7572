"""How long interrupted runs wait, from their events alone."""

import pytest

from cliffwatch.journal import Event, EventType
from cliffwatch.worker.restarts import GIVE_UP_SECONDS, LEAST_WORKERS, LONGEST_PAUSE_SECONDS, losses_of


def death(at: float, windows: int) -> Event:
    return Event(at, EventType.STATE, "interrupted", {"windows": windows})


def test_pauses_double_up_to_a_limit() -> None:
    pauses = [losses_of([death(0.0, 3)] * count, 3).pause_seconds for count in range(1, 12)]
    assert pauses == [0, 1, 2, 4, 8, 16, 32, LONGEST_PAUSE_SECONDS, *[LONGEST_PAUSE_SECONDS] * 3]
    assert losses_of([death(0.0, 3)] * 1000, 3).pause_seconds == LONGEST_PAUSE_SECONDS


def test_a_new_window_makes_all_before_it_forgotten() -> None:
    deaths = [death(float(number), 3) for number in range(9)]
    assert losses_of([*deaths, death(100.0, 4)], 4).wait_seconds(100.0) == 0
    assert not losses_of([*deaths, death(GIVE_UP_SECONDS * 2, 4)], 4).is_exhausted(GIVE_UP_SECONDS * 9)


@pytest.mark.parametrize(("now", "waits"), [(10.0, 4.0), (13.0, 1.0), (14.0, 0.0), (5.0, 4.0)])
def test_a_pause_is_counted_from_the_last_death_and_survives_a_clock_that_was_set_back(
    now: float, waits: float
) -> None:
    assert losses_of([death(10.0, 3)] * 4, 3).wait_seconds(now) == waits


def test_a_stop_does_not_wait_for_long() -> None:
    assert losses_of([death(10.0, 3)] * 30, 3).wait_seconds(10.0, stopping=True) == 5


def test_time_and_not_a_count_makes_a_run_hopeless() -> None:
    assert not losses_of([death(0.0, 3)] * 1000, 3).is_exhausted(GIVE_UP_SECONDS - 1)
    # A service that was down for a day has tried nothing yet.
    assert not losses_of([death(0.0, 3)] * (LEAST_WORKERS - 1), 3).is_exhausted(86_400.0)
    assert losses_of([death(0.0, 3)] * LEAST_WORKERS, 3).is_exhausted(GIVE_UP_SECONDS)


def test_an_engine_that_says_that_its_load_ended_ends_no_run() -> None:
    reported = Event(5.0, EventType.ENGINE, "load_ended", {"unwritten_records": 0})
    losses = losses_of([death(1.0, 3), reported, death(9.0, 3)], 3)
    assert (losses.count, losses.ended) == (2, False)
    ended = losses_of([death(1.0, 3), Event(5.0, EventType.ENGINE, "load_ended", {"how": "failed"}), death(9.0, 3)], 3)
    assert (ended.count, ended.ended) == (1, True)
