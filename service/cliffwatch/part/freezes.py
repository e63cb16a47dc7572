"""Freeze detection: time in which the engine, or the part that reads it, did not run: stopped, or machine asleep.

A target that stalls is something else: the engine runs and its operations are outstanding, and that is what a run is
there to measure. So nothing is concluded from operations that do not complete, only from a process that did not run:

- an engine's process that the kernel says is stopped (state T), seen by the part each time that it looks;
- a timer of the part's own that came late by more than anything but a stop explains. It does no I/O, so a slow disk
  below the journal cannot hold it up.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ENGINE_FROZEN, WORKER_FROZEN = "engine_frozen", "worker_frozen"
#: How often the part's timer looks at the clock, and how late it has to be for the part to have been frozen.
TICK_SECONDS = 0.5
LATE_SECONDS = 2.0
#: Children of the engine's process are looked at so often; the process itself each time.
CHILDREN_SECONDS = 1.0
#: States of proc(5): by a signal, and by a debugger.
STOPPED = frozenset({"T", "t"})
#: Freezes that are remembered: windows come in order, so older ones concern none that is still to come.
_REMEMBERED = 100


@dataclass(frozen=True, slots=True)
class Freeze:
    """`start` and `end` on the run's time line; a little longer than the truth, since it is seen from outside."""

    start: float
    end: float
    reason: str

    @property
    def seconds(self) -> float:
        return self.end - self.start


class FreezeWatch:
    """Freezes, past and present, of one part and of its present engine."""

    def __init__(self, now: Callable[[], float], proc: Path = Path("/proc")) -> None:
        """`now` is the run's clock, in seconds; it goes on while a process is frozen."""
        self._now = now
        self._proc = proc
        self._pid: int | None = None
        #: When the engine's process, and when its children, were last seen not to be stopped.
        self._ran_at = self._children_ran_at = now()
        self._since: float | None = None
        self._children_at = float("-inf")
        self._ticked_at = now()
        self._late: list[Freeze] = []
        self._past: list[Freeze] = []
        self._lock = threading.Lock()
        self._end = threading.Event()
        threading.Thread(target=self._tick, name="freezes", daemon=True).start()

    def close(self) -> None:
        self._end.set()

    @property
    def frozen_since(self) -> float | None:
        """Since when the engine is frozen; None while it is not."""
        return self._since

    def follow(self, pid: int | None) -> list[Freeze]:
        """Watch another engine from now on, or none; returns freezes that are over with that."""
        over = self._thaw() if self._since is not None else []
        self._pid = pid
        self._ran_at = self._children_ran_at = self._now()
        return over

    def look(self) -> list[Freeze]:
        """Freezes that ended since the last call."""
        self._look_at_timer()
        with self._lock:
            over, self._late = self._late, []
        self._past += over
        for freeze in over:
            # A container that goes on may have its part run a moment before its engine: that moment is the engine's.
            self._ran_at = max(self._ran_at, freeze.end)
            self._children_ran_at = max(self._children_ran_at, freeze.end)
        stopped_since = None if self._pid is None else self._stopped_since(self._pid)
        if stopped_since is None and self._since is not None:
            over += self._thaw()
        elif self._since is None:
            self._since = stopped_since
        del self._past[:-_REMEMBERED]
        return over

    def within(self, start: float, end: float) -> tuple[float, str]:
        """How many seconds of an interval were frozen, and by the longest of which reasons; 0 and nothing if none."""
        known = [*self._past, *([] if self._since is None else [Freeze(self._since, self._now(), ENGINE_FROZEN)])]
        parts = [
            Freeze(max(start, freeze.start), min(end, freeze.end), freeze.reason)
            for freeze in known
            if freeze.start < end and freeze.end > start
        ]
        seconds, reached = 0.0, start
        for part in sorted(parts, key=lambda part: part.start):
            seconds += max(0.0, part.end - max(part.start, reached))
            reached = max(reached, part.end)
        return seconds, max(parts, key=lambda part: part.seconds).reason if parts else ""

    def _thaw(self) -> list[Freeze]:
        assert self._since is not None, "only what is frozen thaws"
        freeze = Freeze(self._since, self._now(), ENGINE_FROZEN)
        self._since = None
        self._past.append(freeze)
        return [freeze]

    def _tick(self) -> None:
        while not self._end.wait(TICK_SECONDS):
            self._look_at_timer()

    def _look_at_timer(self) -> None:
        """Record a freeze of this process, in the first thread to run after it: the timer's, or the engine's reader."""
        with self._lock:
            before, self._ticked_at = self._ticked_at, self._now()
            if self._ticked_at - before > LATE_SECONDS:
                self._late.append(Freeze(before, self._ticked_at, WORKER_FROZEN))

    def _stopped_since(self, pid: int) -> float | None:
        """When the engine was last seen to run, if it is stopped now."""
        if self._state(pid) in STOPPED:
            return self._ran_at
        self._ran_at = self._now()
        if self._since is None and time.monotonic() - self._children_at < CHILDREN_SECONDS:
            return None
        self._children_at = time.monotonic()
        if any(self._state(child) in STOPPED for child in self._children(pid)):
            return self._children_ran_at
        self._children_ran_at = self._now()
        return None

    def _children(self, pid: int) -> list[int]:
        """Engines such as fio have a process for each of their jobs."""
        try:
            return [int(word) for word in (self._proc / str(pid) / "task" / str(pid) / "children").read_text().split()]
        except (OSError, ValueError):
            return []  # it is gone, or the kernel does not show it

    def _state(self, pid: int) -> str:
        try:
            stat = (self._proc / str(pid) / "stat").read_text(errors="replace")
        except OSError:
            return ""  # it is gone
        return stat.rpartition(")")[2].split()[0]
