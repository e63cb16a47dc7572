"""Time as the worker sees it: one wall clock, one monotonic clock, one way to wait.

Everything that needs the time takes a `Clock`. `SystemClock` is the machine's; `VirtualClock` moves only when advanced,
so that a 36 h run takes seconds.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

#: How often a condition is looked at.
_POLL_SECONDS = 0.05


class Clock(Protocol):
    """Seconds since the epoch (`wall`), seconds since an arbitrary moment (`monotonic`), and a way to wait."""

    def wall(self) -> float: ...

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own clocks."""

    def wall(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

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

    def sleep(self, seconds: float) -> None:
        self._now += max(0.0, seconds)

    def advance_to(self, moment: float) -> None:
        self._now = max(self._now, moment)


@dataclass(frozen=True, slots=True)
class Jump:
    """The wall clock moved by `seconds` against the monotonic clock (positive: forward)."""

    at: float
    seconds: float


class RunClock:
    """The time line of one run: the wall clock at its anchor plus monotonic time since.

    A wall clock that is set while the run goes on therefore moves no window. `jump()` reports each such step once.
    """

    #: A step below this is ordinary slewing by NTP and scheduling noise between two clock readings.
    JUMP_THRESHOLD_SECONDS = 0.5

    def __init__(self, clock: Clock, not_before: float = 0.0) -> None:
        """`not_before`: the end of what was measured already; an anchor earlier than that would overlap it."""
        self._clock = clock
        self._anchor_wall = max(clock.wall(), not_before)
        self._anchor_monotonic = clock.monotonic()
        self._offset = clock.wall() - self._anchor_wall

    def now(self) -> float:
        return self._anchor_wall + (self._clock.monotonic() - self._anchor_monotonic)

    def sleep_until(self, moment: float) -> None:
        self._clock.sleep(moment - self.now())

    def jump(self) -> Jump | None:
        """The step of the wall clock since the last call, if it made one."""
        now = self.now()
        offset = self._clock.wall() - now
        step = offset - self._offset
        if abs(step) < self.JUMP_THRESHOLD_SECONDS:
            return None
        self._offset = offset
        return Jump(at=now, seconds=step)


def wait_until(condition: Callable[[], bool], clock: Clock, patience_seconds: float) -> bool:
    """Whether a condition that is looked at again and again came to hold in time."""
    deadline = clock.monotonic() + patience_seconds
    while not condition():
        if clock.monotonic() >= deadline:
            return False
        clock.sleep(_POLL_SECONDS)
    return True
