"""The run's time line stays straight while the wall clock is set forwards and backwards."""

import pytest

from cliffwatch.base.clock import RunClock, VirtualClock, wait_until


class SettableClock(VirtualClock):
    """A machine whose wall clock is set, and that sleeps."""

    def __init__(self, start: float) -> None:
        super().__init__(start)
        self.offset = 0.0
        self.slept = 0.0

    def wall(self) -> float:
        return super().wall() + self.offset + self.slept

    def suspended(self) -> float:
        return self.slept


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_jump_of_the_wall_clock_is_reported_once_and_moves_no_window(step: float) -> None:
    clock = SettableClock(1_790_000_000.0)
    run_clock = RunClock(clock)
    clock.sleep(10)
    assert run_clock.shift() is None
    clock.offset = step
    clock.sleep(10)
    shift = run_clock.shift()
    assert shift is not None
    assert shift.set_seconds == pytest.approx(step)
    assert shift.suspended_seconds == 0.0
    assert run_clock.shift() is None
    assert run_clock.now() == pytest.approx(1_790_000_020.0)


def test_a_machine_that_slept_was_not_set_and_the_run_stood_still() -> None:
    clock = SettableClock(1_790_000_000.0)
    run_clock = RunClock(clock)
    clock.slept = 3600.0
    clock.sleep(10)
    shift = run_clock.shift()
    assert shift is not None
    assert (shift.set_seconds, shift.suspended_seconds) == (0.0, 3600.0)
    assert run_clock.shift() is None
    assert run_clock.now() == pytest.approx(1_790_000_010.0)


def test_a_clock_that_was_set_while_the_machine_slept_was_both() -> None:
    clock = SettableClock(1_790_000_000.0)
    run_clock = RunClock(clock)
    clock.slept, clock.offset = 3600.0, -1800.0
    shift = run_clock.shift()
    assert shift is not None
    assert shift.set_seconds == pytest.approx(-1800.0)
    assert shift.suspended_seconds == 3600.0


def test_a_leap_second_that_is_smeared_over_a_day_is_no_jump_until_half_of_it_is_there() -> None:
    """Where only the wall clock is slowed; the kernel slows both, and then nothing moves at all."""
    clock = SettableClock(1_790_000_000.0)
    run_clock = RunClock(clock)
    shifts = []
    for hour in range(1, 25):
        clock.sleep(3600)
        clock.offset = -hour / 24
        shifts.append(run_clock.shift())
    assert [shift.set_seconds for shift in shifts if shift] == [pytest.approx(-0.5), pytest.approx(-0.5)]
    assert run_clock.now() == pytest.approx(1_790_000_000.0 + 24 * 3600)


def test_slewing_is_no_jump() -> None:
    clock = SettableClock(1_790_000_000.0)
    run_clock = RunClock(clock)
    clock.offset = 0.4
    assert run_clock.shift() is None


def test_a_resumed_time_line_never_starts_before_what_was_measured() -> None:
    clock = SettableClock(1_790_000_000.0)
    run_clock = RunClock(clock, not_before=1_790_000_500.0)
    assert run_clock.now() == 1_790_000_500.0
    run_clock.sleep_until(1_790_000_510.0)
    assert run_clock.now() == pytest.approx(1_790_000_510.0)
    assert run_clock.shift() is None


def test_a_condition_is_waited_for_no_longer_than_the_patience() -> None:
    clock = VirtualClock(100.0)
    assert wait_until(lambda: clock.monotonic() >= 103.0, clock, 5.0)
    assert clock.monotonic() == pytest.approx(103.0, abs=0.1)
    assert not wait_until(lambda: False, clock, 2.0)
    assert clock.monotonic() == pytest.approx(105.0, abs=0.15)
