"""Windows without operations, reported in place of an engine that is silent because its target hangs.

A program such as fio reports nothing while the thread that it queries waits for its drive, and then puts all of that
time into one window. The kernel shows the hang: a thread in uninterruptible wait that has not run since the last poll
has waited all the time, and a drive with requests in flight that completes none hangs. While one of the two lasts, the
part reports what the engine cannot: windows without an operation, and the age of the oldest one. An engine that is
silent for another reason, stopped or too busy, is not a stall, and its time stays a gap.
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

#: In windows: how long after the engine's last window the kernel is first polled, since windows arrive after their end;
#: and how late a window is before the part reports it, so that the engine can still report one that is merely late.
_LOOK_AFTER_WINDOWS, _LATE_WINDOWS = 1.5, 2.0
#: Two polls that are further apart than this, as after a freeze of the part, say nothing about the time between them.
_LOOKS_APART_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """Threads and drives that wait at one moment. `threads`: thread id, and its context switches. `completed`: requests
    that the drives below the target have completed so far; None when they have none in flight."""

    threads: frozenset[tuple[int, int]] = frozenset()
    completed: int | None = None

    @classmethod
    def of(cls, process: ProcessIdentity, drives: Sequence[str]) -> "Waiting":
        """Waiting threads and drives at this moment. `drives`: as major:minor."""
        return cls(uninterruptible_waits(process.pid), _completed(drives))

    def lasting(self, later: "Waiting") -> "Waiting":
        """Threads and drives that made no progress from this moment to `later`."""
        return Waiting(self.threads & later.threads, self.completed if self.completed == later.completed else None)

    def __bool__(self) -> bool:
        return bool(self.threads) or self.completed is not None


class SilenceWatch:
    """Watch for engines of one run that are silent because their target hangs; makes windows in their place."""

    def __init__(self, context: PartContext, drives: Sequence[str]) -> None:
        self._context = context
        self._drives = drives
        self._window_seconds = context.workload.window
        self._process: ProcessIdentity | None = None
        #: End of the engine's last window, and of the last window reported in its place.
        self._silent_since = self._said_until = -math.inf
        self._waiting = Waiting()
        self._waits_since = self._looked_at = -math.inf

    def follow(self, process: ProcessIdentity | None, start: float) -> None:
        """Watch another engine from now on, whose load begins at `start`, or none."""
        self._process = process
        self._silent_since = start
        self._waiting = Waiting()

    def begin(self, start: float) -> None:
        """Set the actual start of the engine's load in place of the planned one."""
        self._silent_since = start

    def rest_of(self, window: EngineWindow) -> EngineWindow:
        """The engine's window without the time that was already reported in its place."""
        self._silent_since, self._waiting = window.end, Waiting()
        is_partly_said = window.start < self._said_until < window.end
        return replace(window, start=self._said_until) if is_partly_said else window

    def look(self, until: float, is_over: bool = False) -> list[EngineWindow]:
        """Windows to report in the engine's place, in order, none after `until`; `is_over`: the engine is done.

        Call several times a second while the engine runs.
        """
        now, reached = self._context.run_clock.now(), max(self._silent_since, self._said_until)
        if self._process is None or now - reached < _LOOK_AFTER_WINDOWS * self._window_seconds:
            return []
        self._look_at_kernel(self._process, now)
        waited = now - self._waits_since if self._waiting else 0.0
        if waited < max(LONGEST_SECONDS, SILENT_WINDOWS * self._window_seconds):
            return []
        # A wait that was seen at the first poll had begun before it.
        unknown = self._waits_since - reached - 2 * _LOOK_AFTER_WINDOWS * self._window_seconds
        skipped = max(0, math.ceil(unknown / self._window_seconds))
        # An engine that may still report keeps the load's last window, in which outstanding operations complete.
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
