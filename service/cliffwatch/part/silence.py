"""Windows in place of an engine that reports nothing because its target hangs: no operation completed in them.

A program such as fio reports nothing while the thread that it asks waits for its drive, and then puts all of that time
into one window. The kernel has the facts. A thread that waits uninterruptibly and has not run since the last look waits
for one thing all the time; and a drive with requests in flight that completes none hangs. While one of the two lasts,
the part reports what the engine cannot: windows without an operation, and how old the oldest one is. What is silent for
another reason, stopped or too busy, is no stall, and its time stays a gap.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cliffwatch.analysis.stalls import LONGEST_SECONDS, SILENT_WINDOWS
from cliffwatch.base.processes import ProcessIdentity, uninterruptible_waits
from cliffwatch.journal.events import EventType
from cliffwatch.machine.diskstats import read_counters, sum_counters
from cliffwatch.model.window import ALIGNMENT_TOLERANCE, OLDEST_OUTSTANDING, EngineWindow
from cliffwatch.part.context import PartContext

#: The kernel is asked from here on: an engine's window is not here the moment that it ends. And so late, in windows,
#: one is written in the engine's place, so that one that is only late still has its own.
_LOOK_AFTER_WINDOWS, _LATE_WINDOWS = 1.5, 2.0
#: Of two looks that are further apart, as after a freeze of the part, the later one says nothing of what was between.
_LOOKS_APART_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits at a moment. `threads`: by thread id and how often each has run. `completed`: what the drives below
    the target have completed so far, while they have more to do; None where they do not."""

    threads: frozenset[tuple[int, int]] = frozenset()
    completed: int | None = None

    @classmethod
    def of(cls, process: ProcessIdentity, drives: Sequence[str]) -> "Waiting":
        """Waiting threads and drives at this moment. `drives`: as major:minor."""
        return cls(uninterruptible_waits(process.pid), _completed(drives))

    def lasting(self, later: "Waiting") -> "Waiting":
        """Threads and drives that wait for the same as before."""
        return Waiting(self.threads & later.threads, self.completed if self.completed == later.completed else None)

    def __bool__(self) -> bool:
        return bool(self.threads) or self.completed is not None


class SilenceWatch:
    """Silences of one run's engines, while their target hangs."""

    def __init__(self, context: PartContext, drives: Sequence[str]) -> None:
        self._context = context
        self._drives = drives
        self._window_seconds = context.workload.window
        self._process: ProcessIdentity | None = None
        #: The end of what the engine reported last, and of what was said in its place since.
        self._silent_since = self._said_until = -math.inf
        self._waiting = Waiting()
        self._waits_since = self._looked_at = -math.inf

    def follow(self, process: ProcessIdentity | None, start: float) -> None:
        """Look at another engine from now on, whose load begins at `start`, or at none."""
        self._process = process
        self._silent_since = start
        self._waiting = Waiting()

    def begin(self, start: float) -> None:
        """Set another start of the engine's load than planned."""
        self._silent_since = start

    def rest_of(self, window: EngineWindow) -> EngineWindow:
        """Rest of a window that the engine reported, without what was written in its place."""
        self._silent_since, self._waiting = window.end, Waiting()
        is_partly_said = window.start < self._said_until < window.end
        return replace(window, start=self._said_until) if is_partly_said else window

    def look(self, until: float, is_over: bool = False) -> list[EngineWindow]:
        """Windows to write in the engine's place, in order, none after `until`; `is_over`: it reports none any more.

        To be called several times a second while the engine is there.
        """
        now, reached = self._context.run_clock.now(), max(self._silent_since, self._said_until)
        if self._process is None or now - reached < _LOOK_AFTER_WINDOWS * self._window_seconds:
            return []
        self._look_at_kernel(self._process, now)
        waited = now - self._waits_since if self._waiting else 0.0
        if waited < max(LONGEST_SECONDS, SILENT_WINDOWS * self._window_seconds):
            return []
        # What was first seen at the first look had begun before it.
        unknown = self._waits_since - reached - 2 * _LOOK_AFTER_WINDOWS * self._window_seconds
        skipped = max(0, math.ceil(unknown / self._window_seconds))
        # An engine that may still speak keeps the load's last window: in it, what was outstanding is completed.
        late, kept = (0.0, 0.0) if is_over else (_LATE_WINDOWS, 1.0)
        known = min(now - late * self._window_seconds, until + (ALIGNMENT_TOLERANCE - kept) * self._window_seconds)
        count = math.floor((known - reached) / self._window_seconds) - skipped
        start = reached + skipped * self._window_seconds
        return self._said(self._process, [start + k * self._window_seconds for k in range(count)])

    def _look_at_kernel(self, process: ProcessIdentity, now: float) -> None:
        present = Waiting.of(process, self._drives)
        is_next = now - self._looked_at <= _LOOKS_APART_SECONDS
        self._looked_at = now
        if is_next and (lasting := self._waiting.lasting(present)):
            self._waiting = lasting
        else:
            self._waiting, self._waits_since = present, now

    def _said(self, process: ProcessIdentity, starts: Sequence[float]) -> list[EngineWindow]:
        if not starts:
            return []
        if self._said_until <= self._silent_since:
            what = [process.waits_in()] if self._waiting.threads else []
            what += (
                ["requests are in flight, and the drive completes none"] if self._waiting.completed is not None else []
            )
            self._context.record_event(EventType.ENGINE, "silent", since=self._silent_since, what="; ".join(what))
        self._said_until = starts[-1] + self._window_seconds
        return [self._window(start, start + self._window_seconds) for start in starts]

    def _window(self, start: float, end: float) -> EngineWindow:
        counters = {"operations": 0, "bytes": 0, "errors": 0}
        return EngineWindow(start, end, counters, {OLDEST_OUTSTANDING: round(end - self._silent_since, 6)})


def _completed(drives: Sequence[str]) -> int | None:
    total = sum_counters(read_counters(drives)) if drives else None
    if total is None or total.in_flight == 0:
        return None
    return total.read_operations + total.write_operations + total.discard_operations + total.flush_operations
