"""How long interrupted runs wait, from their events and from what the service saw itself."""

import pytest

from cliffwatch.app.sightings import Sightings
from cliffwatch.base.clock import VirtualClock
from cliffwatch.coordinator.restarts import GIVE_UP_SECONDS, LEAST_WORKERS, LONGEST_PAUSE_SECONDS, losses_of
from cliffwatch.journal import Event, EventType


def death(at: float, windows: int) -> Event:
    return Event(at, EventType.STATE, "interrupted", {"windows": windows})


def deaths(count: int, seconds_apart: float = 0.0) -> list[Event]:
    return [death(1000.0 + number * seconds_apart, 3) for number in range(count)]


def test_pauses_double_up_to_a_limit() -> None:
    pauses = [losses_of(deaths(count), 3).pause_seconds for count in range(1, 12)]
    assert pauses == [0, 1, 2, 4, 8, 16, 32, LONGEST_PAUSE_SECONDS, *[LONGEST_PAUSE_SECONDS] * 3]
    assert losses_of(deaths(1000), 3).pause_seconds == LONGEST_PAUSE_SECONDS


def test_a_new_window_makes_all_before_it_forgotten() -> None:
    old = deaths(100, seconds_apart=60.0)
    assert losses_of([*old, death(9000.0, 4)], 4).wait_seconds(0.0) == 0
    assert not losses_of([*old, death(9000.0, 4)], 4).is_exhausted(0.0)


@pytest.mark.parametrize(("waited", "waits"), [(0.0, 4.0), (3.0, 1.0), (4.0, 0.0), (5.0, 0.0)])
def test_a_pause_is_counted_from_the_last_death(waited: float, waits: float) -> None:
    assert losses_of(deaths(4), 3).wait_seconds(waited) == waits


def test_a_stop_does_not_wait_for_long() -> None:
    assert losses_of(deaths(30), 3).wait_seconds(0.0, stopping=True) == 5


def test_time_and_not_a_count_makes_a_run_hopeless() -> None:
    assert not losses_of(deaths(1000), 3).is_exhausted(GIVE_UP_SECONDS - 1)
    assert losses_of(deaths(LEAST_WORKERS), 3).is_exhausted(GIVE_UP_SECONDS)
    # A service that was down for a day has tried nothing yet.
    assert not losses_of(deaths(LEAST_WORKERS - 1), 3).is_exhausted(86_400.0)


def test_another_service_goes_on_from_the_pauses_that_lie_between_the_deaths() -> None:
    assert not losses_of(deaths(20, seconds_apart=LONGEST_PAUSE_SECONDS), 3).is_exhausted(0.0)
    assert losses_of(deaths(60, seconds_apart=LONGEST_PAUSE_SECONDS), 3).is_exhausted(0.0)


@pytest.mark.parametrize("step_seconds", [3600.0, -3600.0])
def test_a_clock_that_was_set_between_two_deaths_makes_no_run_hopeless(step_seconds: float) -> None:
    before, after = deaths(3), [death(1000.0 + step_seconds, 3)] * 3
    assert not losses_of([*before, *after], 3).is_exhausted(0.0)


def test_an_engine_that_says_that_its_load_ended_ends_no_run() -> None:
    reported = Event(5.0, EventType.ENGINE, "load_ended", {"unwritten_records": 0})
    losses = losses_of([death(1.0, 3), reported, death(9.0, 3)], 3)
    assert (losses.count, losses.ended) == (2, False)
    ended = losses_of([death(1.0, 3), Event(5.0, EventType.ENGINE, "load_ended", {"how": "failed"}), death(9.0, 3)], 3)
    assert (ended.count, ended.ended) == (1, True)


class SetClock(VirtualClock):
    """Its wall clock is set as a test likes; the other one goes on."""

    def __init__(self, start: float) -> None:
        super().__init__(start)
        self.set_by_seconds = 0.0

    def wall(self) -> float:
        return super().wall() + self.set_by_seconds


@pytest.mark.parametrize("step_seconds", [3600.0, -3600.0])
def test_time_that_was_seen_to_pass_is_not_changed_by_setting_the_clock(step_seconds: float) -> None:
    clock = SetClock(1000.0)
    seen = Sightings(clock)
    assert seen.seconds("run", "pause", 2, since=990.0) == 10
    clock.sleep(5.0)
    clock.set_by_seconds = step_seconds
    assert seen.seconds("run", "pause", 2, since=990.0) == 15
    # Another death is another sighting, and so is the same one to another service.
    assert seen.seconds("run", "pause", 3, since=clock.wall()) == 0
    clock.sleep(2.0)
    assert Sightings(clock).seconds("run", "pause", 3, since=clock.wall() + 3600.0) == 0
    seen.keep_only({"another"})
    assert seen.seconds("run", "pause", 3, since=clock.wall()) == 0
