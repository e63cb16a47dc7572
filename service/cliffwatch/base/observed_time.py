"""Time that was observed to pass, by a clock that cannot be set: it goes on from one process to the next.

It counts CLOCK_BOOTTIME (monotonic time and sleep), also from one process to the next of the same boot. Across a boot
nothing counts: only the wall clock could say for how long the machine was off, and that is wrong most often right then.
So what was observed is never more than what passed.
"""

from dataclasses import dataclass
from typing import Any

from cliffwatch.base.clock import Clock

#: A smaller change of the wall clock against the boot clock is slewing by NTP and time between two readings.
_JUMP_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class _Reading:
    """Observed seconds in all, and the clocks at the same moment: since the boot `boot_id`, and wall time."""

    observed: float
    boot_id: str
    since_boot: float
    wall: float


class ObservedTime:
    """Seconds that were observed to pass, from 0 at the first use; `saved` of an earlier process goes on."""

    def __init__(self, clock: Clock, boot_id: str, saved: object = None) -> None:
        """`saved` is what `to_json` returned; anything else counts as nothing."""
        self._clock, self._boot_id = clock, boot_id
        self._last = _reading_in(saved) or self._read(0.0)
        if self._last.boot_id != boot_id:
            self._last = self._read(self._last.observed)

    def seconds(self) -> float:
        """Observed seconds up to now; never less than before."""
        return self._last.observed + max(0.0, self._since_boot() - self._last.since_boot)

    def jump_seconds(self) -> float:
        """How far the wall clock was set since the last call, or since `saved` in the same boot; 0 if it was not."""
        now = self._read(self.seconds())
        moved = (now.wall - now.since_boot) - (self._last.wall - self._last.since_boot)
        if abs(moved) < _JUMP_SECONDS:
            return 0.0
        self._last = now
        return moved

    def to_json(self) -> dict[str, Any]:
        # With the wall clock's difference of the last call of `jump_seconds`, so that a jump until then is not missed.
        now = self._read(self.seconds())
        wall = self._last.wall - self._last.since_boot + now.since_boot
        return {"observed": now.observed, "boot_id": now.boot_id, "since_boot": now.since_boot, "wall": wall}

    def _read(self, observed: float) -> _Reading:
        return _Reading(observed, self._boot_id, self._since_boot(), self._clock.wall())

    def _since_boot(self) -> float:
        return self._clock.monotonic() + self._clock.suspended()


def _reading_in(saved: object) -> _Reading | None:
    if not isinstance(saved, dict):
        return None
    try:
        observed, since_boot, wall = (float(saved[name]) for name in ("observed", "since_boot", "wall"))
        return _Reading(max(0.0, observed), str(saved["boot_id"]), since_boot, wall)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
