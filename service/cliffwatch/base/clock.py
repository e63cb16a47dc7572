"""Clocks: wall time, monotonic time and waiting behind one interface.

Everything that needs the time takes a `Clock`. `SystemClock` is the machine's; `VirtualClock` moves only when advanced,
so that a 36 h run takes seconds.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

#: Interval between two checks of a condition.
_POLL_SECONDS = 0.05

#: End of 9999-12-31, the last day that can be written as a date; seconds since the epoch.
LAST_MOMENT = 253_402_300_799.0


class Clock(Protocol):
    """Seconds since the epoch (`wall`), seconds since an arbitrary moment (`monotonic`), and a way to wait.

    `suspended` is the time in seconds that the machine has slept since its start; `monotonic` stands still meanwhile.
    """

    def wall(self) -> float: ...

    def monotonic(self) -> float: ...

    def suspended(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """Clock of the machine: system time and monotonic time."""

    def wall(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def suspended(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))


class VirtualClock:
    """A clock that stands still until `sleep` or `advance_to` moves it."""

    def __init__(self, start: float) -> None:
        self._now = start

    def wall(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def suspended(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        self._now += max(0.0, seconds)

    def advance_to(self, moment: float) -> None:
        self._now = max(self._now, moment)


@dataclass(frozen=True, slots=True)
class Shift:
    """How far the wall clock moved against the run's clock: it was set (positive: forward), or the machine slept."""

    set_seconds: float
    suspended_seconds: float


class RunClock:
    """Clock of one run: the wall clock's time at its creation (or `not_before`, if later), plus monotonic time since.

    Setting the wall clock during the run therefore moves no window, and the run's time stands still while the machine
    sleeps. `shift()` reports each setting and each sleep once.
    """

    #: A step below this is ordinary slewing by NTP and scheduling noise between two clock readings.
    SHIFT_THRESHOLD_SECONDS = 0.5

    def __init__(self, clock: Clock, not_before: float = 0.0) -> None:
        """`not_before`: end of the windows that an earlier worker measured, before which this clock must not begin."""
        self._clock = clock
        self._anchor_wall = max(clock.wall(), not_before)
        self._anchor_monotonic = clock.monotonic()
        self._offset = clock.wall() - self._anchor_wall
        self._suspended = clock.suspended()

    def now(self) -> float:
        return self._anchor_wall + (self._clock.monotonic() - self._anchor_monotonic)

    @property
    def ahead_of_monotonic(self) -> float:
        """Seconds by which this clock is ahead of the monotonic clock, which all processes of a machine share."""
        return self._anchor_wall - self._anchor_monotonic

    def sleep_until(self, moment: float) -> None:
        self._clock.sleep(moment - self.now())

    def shift(self) -> Shift | None:
        """How far the wall clock moved since the last call; None unless it was set or the machine slept."""
        suspended = self._clock.suspended()
        slept = suspended - self._suspended
        if slept < self.SHIFT_THRESHOLD_SECONDS:
            slept = 0.0
        offset = self._clock.wall() - self.now()
        step = offset - self._offset - slept
        if abs(step) < self.SHIFT_THRESHOLD_SECONDS:
            step = 0.0
        if not step and not slept:
            return None
        self._offset, self._suspended = offset, suspended
        return Shift(set_seconds=step, suspended_seconds=slept)


def wait_until(condition: Callable[[], bool], clock: Clock, patience_seconds: float) -> bool:
    """Poll a condition until it holds; returns False if it does not hold in time."""
    deadline = clock.monotonic() + patience_seconds
    while not condition():
        if clock.monotonic() >= deadline:
            return False
        clock.sleep(_POLL_SECONDS)
    return True
