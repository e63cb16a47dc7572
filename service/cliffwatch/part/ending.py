"""End a process of the run: send its stop signal, then kill it, then stop waiting for it.

SIGKILL does not end a process that waits in the kernel for a drive: it ends only when the drive answers. The run ends
without that process, records it, and does not access the target any more.
"""

import signal
from typing import Any

from cliffwatch.base.clock import SystemClock
from cliffwatch.journal.events import EventType
from cliffwatch.part.child_process import LEAVE_SECONDS, ChildProcess
from cliffwatch.part.context import PartContext


class Ending:
    """End of one process: sends each signal when it is due."""

    def __init__(
        self, context: PartContext, process: ChildProcess[Any], stop_signal: signal.Signals | None, grace_seconds: float
    ) -> None:
        """`stop_signal`: None where the process is to go on to its own end. `grace_seconds`: time that it has to end
        after the stop, on the run's clock."""
        self._context = context
        self._process = process
        self._stop_signal = stop_signal
        self._grace_seconds = grace_seconds
        self._asked_at: float | None = None
        self._killed_at: float | None = None

    def look(self, is_wanted: bool) -> None:
        """Send the next signal if it is due: the first once `is_wanted`. Call several times a second until the end."""
        now = self._context.run_clock.now()
        if self._asked_at is None:
            if is_wanted:
                self._asked_at = now
                if self._stop_signal is not None:
                    self._process.ask_to_stop(self._stop_signal)
        elif self._killed_at is None:
            if now - self._asked_at > self._grace_seconds:
                self._killed_at = SystemClock().monotonic()
                reason = "did not stop within the grace period"
                self._context.record_event(EventType.ENGINE, "killed", reason=reason)
                self._process.kill()
        elif SystemClock().monotonic() - self._killed_at > LEAVE_SECONDS and self._process.leave():
            assert self._process.identity is not None, "a process that is there has an identity"
            self._context.leave(self._process.identity)
