"""Telemetry collection in the worker: a separate process collects, so that a problem in it cannot delay the load.

It is started at intervals and once more at the run's end, polled in between, and killed when it takes too long. The
journal records when telemetry begins to be missing and when collection resumes; the run continues.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from cliffwatch.journal import Event, EventType
from cliffwatch.telemetry.result import Result

#: Samples newer than this may not be in Prometheus yet: the next attempt collects them.
SETTLE_SECONDS = 5.0
#: How long one attempt may take: during the load, and at the end, where everything may be missing.
ATTEMPT_SECONDS = 60.0
LAST_ATTEMPT_SECONDS = 180.0
_KILL_AFTER_SECONDS = 10.0
_POLL_SECONDS = 0.05
MISSING, RESUMED = "telemetry_missing", "telemetry_resumed"


def interval_seconds(window_seconds: float) -> float:
    """Interval of collection: 5 minutes or 60 windows, whichever is shorter, but at least 30 s, so that it does not
    slow down the load."""
    return max(30.0, min(300.0, 60 * window_seconds))


class CollectionTask:
    """Collects the telemetry of one run. Moments are seconds since the epoch."""

    def __init__(
        self,
        directory: Path,
        url: str | None,
        window_seconds: float,
        record_event: Callable[..., None],
        events: Iterable[Event] = (),
    ) -> None:
        """`record_event(type, name, **detail)` appends an event; `events` are those of earlier workers of the run."""
        self._directory = directory
        self._url = url
        self._interval = interval_seconds(window_seconds)
        self._record_event = record_event
        recorded = [event.name for event in events if event.type is EventType.NOTE and event.name in {MISSING, RESUMED}]
        self._is_missing = recorded[-1:] == [MISSING]
        self._process: subprocess.Popen[bytes] | None = None
        self._kill_at = 0.0
        self._due: float | None = None

    @property
    def is_busy(self) -> bool:
        return self._process is not None

    def poll(self, now: float) -> None:
        """Start a collection that is due, and record the result of one that has ended. Returns at once."""
        self._look()
        if self._due is None:
            self._due = now + self._interval
        if now >= self._due and not self.is_busy:
            self._due = now + self._interval
            self._start(now - SETTLE_SECONDS, ATTEMPT_SECONDS)

    def finish(self, now: Callable[[], float], wait: Callable[[float], None]) -> None:
        """Collect the rest, up to the end of the load; `wait(seconds)` is called repeatedly until that is done."""
        self._due = float("inf")
        while self.is_busy:
            wait(_POLL_SECONDS)
            self._look()
        self._start(now(), LAST_ATTEMPT_SECONDS)
        while self.is_busy:
            wait(_POLL_SECONDS)
            self._look()

    def _start(self, until: float, seconds: float) -> None:
        if self._url is None:
            self._note(Result(missing="no Prometheus is configured"))
            return
        attempt = ["--prometheus", self._url, "--until", f"{until:.3f}", "--seconds", f"{seconds:g}"]
        command = [sys.executable, "-m", "cliffwatch.telemetry", str(self._directory), *attempt]
        try:
            # Killed when the worker ends, like the engine: the next worker starts its own.
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                start_new_session=True,
                env=os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"},
                cwd="/",
            )
        except OSError as error:
            self._note(Result(missing=f"the process that asks Prometheus cannot be started: {error}"))
            return
        self._kill_at = time.monotonic() + seconds + _KILL_AFTER_SECONDS

    def _look(self) -> None:
        process = self._process
        if process is None:
            return
        status = process.poll()
        if status is None and time.monotonic() < self._kill_at:
            return
        if status is None:
            process.kill()
        # One short line: it fits into the pipe, so the process never waits for it to be read.
        output, _ = process.communicate()
        self._process = None
        try:
            self._note(Result.from_line(output))
        except ValueError:
            why = "took too long and was killed" if status is None else f"ended with status {status}"
            self._note(Result(missing=f"the process that asks Prometheus {why}"))

    def _note(self, result: Result) -> None:
        if result.missing and not self._is_missing:
            self._record_event(EventType.NOTE, MISSING, reason=result.missing)
        elif not result.missing and self._is_missing and result.parts:
            self._record_event(EventType.NOTE, RESUMED, rows=result.rows)
        self._is_missing = bool(result.missing) or (self._is_missing and not result.parts)
