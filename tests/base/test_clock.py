"""The run's time line stays straight while the wall clock is set forwards and backwards."""

import pytest

from cliffwatch.base.clock import RunClock, VirtualClock, wait_until


class SettableClock(VirtualClock):
    """A machine whose wall clock somebody sets."""

    def __init__(self, start: float) -> None:
        super().__init__(start)
        self.offset = 0.0

    def wall(self) -> float:
        return super().wall() + self.offset


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_jump_of_the_wall_clock_is_reported_once_and_moves_no_window(step: float) -> None:
    clock = SettableClock(1_790_000_000.0)
    run_clock = RunClock(clock)
    clock.sleep(10)
    assert run_clock.jump() is None
    clock.offset = step
    clock.sleep(10)
    jump = run_clock.jump()
    assert jump is not None
    assert jump.seconds == pytest.approx(step)
    assert run_clock.jump() is None
    assert run_clock.now() == pytest.approx(1_790_000_020.0)


def test_slewing_is_no_jump() -> None:
    clock = SettableClock(1_790_000_000.0)
    run_clock = RunClock(clock)
    clock.offset = 0.4
    assert run_clock.jump() is None


def test_a_resumed_time_line_never_starts_before_what_was_measured() -> None:
    clock = SettableClock(1_790_000_000.0)
    run_clock = RunClock(clock, not_before=1_790_000_500.0)
    assert run_clock.now() == 1_790_000_500.0
    run_clock.sleep_until(1_790_000_510.0)
    assert run_clock.now() == pytest.approx(1_790_000_510.0)
    assert run_clock.jump() is None


def test_a_condition_is_waited_for_no_longer_than_the_patience() -> None:
    clock = VirtualClock(100.0)
    assert wait_until(lambda: clock.monotonic() >= 103.0, clock, 5.0)
    assert clock.monotonic() == pytest.approx(103.0, abs=0.1)
    assert not wait_until(lambda: False, clock, 2.0)
    assert clock.monotonic() == pytest.approx(105.0, abs=0.15)
