"""Commit windows to the journal. While its disk is full they wait in memory, and the load continues."""

import time
from collections import deque
from collections.abc import Callable

from cliffwatch.base import durable
from cliffwatch.coordinator.context import FULL_DISK_PAUSE_SECONDS, RunContext
from cliffwatch.coordinator.engine_names import NameLimit
from cliffwatch.journal import JournalWindow
from cliffwatch.journal.events import EventType
from cliffwatch.journal.windows import OverlapError
from cliffwatch.model.window import EngineWindow

#: Most windows that wait in memory, some MB each at most; beyond that the oldest are lost, and a gap is recorded.
WAITING_LIMIT = 60
#: How long to wait for free space on the journal's disk once the load is over.
PATIENCE_SECONDS = 1800.0
#: Reason of the gap where windows were lost because the journal's disk was full.
JOURNAL_FULL = "journal_full"


class WindowCommitter:
    """Commits the windows of a load in their order."""

    def __init__(
        self,
        context: RunContext,
        phase_at: Callable[[float], str],
        kept: Callable[[EngineWindow, JournalWindow, float | None], None],
    ) -> None:
        """`kept(window, committed, previous_end)` is called for each committed window.

        `previous_end` is the end of the window before it, None for the run's first.
        """
        self._context = context
        #: Journal files that were moved or removed, and for which no event is recorded yet.
        self._displaced: list[str] = []
        self._phase_at = phase_at
        self._kept = kept
        self._names = NameLimit(len(context.order.parts))
        self._waiting: deque[EngineWindow] = deque()
        self._full_since: float | None = None
        #: Windows lost since the last committed one.
        self.lost = 0

    def add(self, window: EngineWindow) -> None:
        for kind in self._names.fit(window):
            self._context.record_event(EventType.NOTE, "names_limited", kind=kind, limit=self._names.limits[kind])
        self._waiting.append(window)
        self.write()
        while len(self._waiting) > WAITING_LIMIT:
            self._waiting.popleft()
            self.lost += 1

    def write(self) -> bool:
        """Commit the waiting windows as far as the disk has room; returns True when none is left waiting."""
        while self._waiting:
            if not self._write(self._waiting[0]):
                return False
            self._waiting.popleft()
        return True

    def finish(self) -> None:
        """Commit the waiting windows, and wait up to PATIENCE_SECONDS for room; windows that still wait are lost.

        Their loss is recorded as a gap.
        """
        give_up = time.monotonic() + PATIENCE_SECONDS
        while not self.write() and time.monotonic() < give_up:
            self._context.wait_beating(FULL_DISK_PAUSE_SECONDS)
        if not self._waiting:
            return
        self.lost += len(self._waiting)
        start, end = self._waiting[0].start, self._waiting[-1].end
        self._waiting.clear()
        last = self._context.windows.last
        start = start if last is None else last.end
        self._context.record_event(EventType.GAP, JOURNAL_FULL, start=start, end=end, seconds=round(end - start, 6))
        self._record_full_disk()

    def _write(self, window: EngineWindow) -> bool:
        context = self._context
        displaced = context.windows.displaced()
        try:
            if displaced is not None:
                # Windows in the displaced file stay there; new windows go to a file under its name.
                context.windows = context.windows.begun_again()
                self._displaced.append(displaced)
            previous_end = context.windows.last.end if context.windows.last else None
            committed = context.windows.append(window, self._phase_at(window.start))
        except OverlapError as error:
            context.record_event(EventType.JOURNAL, "window_refused", message=str(error))
            return True
        except OSError as error:
            if not durable.is_full(error):
                raise
            self._full_since = context.run_clock.now() if self._full_since is None else self._full_since
            return False
        while self._displaced:
            # Recorded only now, when the disk has room.
            context.record_event(EventType.JOURNAL, "file_displaced", file=self._displaced[0])
            del self._displaced[0]
        self._record_full_disk()
        self._kept(window, committed, previous_end)
        self.lost = 0
        return True

    def _record_full_disk(self) -> None:
        if self._full_since is None:
            return
        seconds = round(self._context.run_clock.now() - self._full_since, 3)
        detail = {"start": self._full_since, "seconds": seconds, "lost": self.lost}
        self._context.record_event(EventType.JOURNAL, "disk_was_full", **detail)
        self._full_since = None
