"""Freeze detection: time in which the engine, or the part that reads it, did not run because it was stopped.

A stall of the target is not a freeze: the engine runs and its operations are outstanding, which is what a run measures.
So a freeze is never concluded from operations that do not complete, only from a process that did not run:

- the engine's process is stopped (state T in /proc) when the part polls it;
- a timer of the part fires so late that only a stopped process explains it. It does no I/O, so a slow disk below the
  journal cannot delay it.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ENGINE_FROZEN, WORKER_FROZEN = "engine_frozen", "worker_frozen"
#: Interval of the part's timer, and the time between two ticks above which the part was frozen.
TICK_SECONDS = 0.5
LATE_SECONDS = 2.0
#: Interval at which children of the engine's process are polled; the process itself is polled each time.
CHILDREN_SECONDS = 1.0
#: Process states of proc(5): stopped by a signal, and by a debugger.
STOPPED = frozenset({"T", "t"})
#: Freezes that are remembered. Windows come in order, so older freezes do not overlap later windows.
_REMEMBERED = 100


@dataclass(frozen=True, slots=True)
class Freeze:
    """One freeze, on the run's time line. Polling makes `start` a little too early, and `end` a little too late."""

    start: float
    end: float
    reason: str

    @property
    def seconds(self) -> float:
        return self.end - self.start


class FreezeWatch:
    """Watch for freezes of one part and of its present engine."""

    def __init__(self, now: Callable[[], float], proc: Path = Path("/proc")) -> None:
        """`now` is the run's clock, in seconds; it advances while a process is frozen."""
        self._now = now
        self._proc = proc
        self._pid: int | None = None
        #: When the engine's process, and when its children, were last seen running (not stopped).
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
        """Start of the engine's present freeze; None while it is not frozen."""
        return self._since

    def follow(self, pid: int | None) -> list[Freeze]:
        """Watch another engine from now on, or none; returns the freeze of the engine before, if one ends here."""
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
            # When a container resumes, the part may run a moment before the engine: the engine freeze is that moment.
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
        """Frozen seconds within an interval, and the reason of the longest freeze in it; 0 and "" without a freeze."""
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
        """Record a freeze of this process that has just ended. Called by the timer's thread and the engine's reader."""
        with self._lock:
            before, self._ticked_at = self._ticked_at, self._now()
            if self._ticked_at - before > LATE_SECONDS:
                self._late.append(Freeze(before, self._ticked_at, WORKER_FROZEN))

    def _stopped_since(self, pid: int) -> float | None:
        """When the engine was last seen running, if it or a child of it is stopped now; None if not."""
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
        """Pids of the engine's child processes: engines such as fio have one for each job."""
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
