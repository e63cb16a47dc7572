"""Child process whose output is parsed into records: start it, read it, request a stop, kill it.

It dies with the process that started it (PR_SET_PDEATHSIG): when a coordinator is killed, its part dies, and then the
part's engine, so nothing keeps writing to a drive. An engine's standard error is kept in engine.log, up to a limit.
"""

import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from cliffwatch.base import durable
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.processes import ProcessIdentity, disown
from cliffwatch.base.regular_files import open_regular
from cliffwatch.engines.contract import Launch
from cliffwatch.model.window import EngineEnd

#: How much of the end of an engine's standard error goes into a failure's message.
_LAST_LINES, _LAST_CHARACTERS = 3, 500

#: How long a killed process is waited for; one that is still there is abandoned, since it hangs in the kernel.
LEAVE_SECONDS = 5.0

_LOG_LIMIT_BYTES = 1 << 20
_CHUNK_BYTES = 1 << 16
#: How long an engine's output is read after the engine has ended, if another process still has it open.
_OUTPUT_PATIENCE_SECONDS = 5.0


R = TypeVar("R")


class Reader(Protocol[R]):
    """Parser of a process's output into records."""

    def feed(self, chunk: bytes, received_at: float) -> list[R]:
        """Records completed by `chunk`; `received_at` is on the run's time line."""
        ...

    def finish(self, exit_status: int) -> list[R]:
        """Records that only the end of the output completes."""
        ...


@dataclass(frozen=True, slots=True)
class Wake:
    """What ends a wait for output early: a descriptor that becomes readable, and the function that then reads it."""

    descriptor: int
    read: Callable[[], object]


def _inherited(names: Collection[str] | None) -> dict[str, str]:
    """Environment variables of this process that have one of these names; all if None."""
    return {name: value for name, value in os.environ.items() if names is None or name in names}


class ChildProcess(Generic[R]):
    """A running process. Use as a context manager: leaving it kills what is left of the process group."""

    def __init__(
        self, launch: Launch, reader: Reader[R], log: Path | None, wake: Wake, *, takes_input: bool = False
    ) -> None:
        """Start the process. `log`: file for its standard error; with None it shares this process's.

        Raises Problem(component_missing).
        """
        self._reader = reader
        self._log_path = log
        self._log_tail = b""
        if shutil.which(launch.command[0]) is None:
            raise Problem(Code.COMPONENT_MISSING, f"{launch.command[0]} is not installed, or not on PATH")
        # setpriv (util-linux) rather than preexec_fn: there are threads here, and code between fork and exec may hang.
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *launch.command],
            stdin=subprocess.PIPE if takes_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if log is None else subprocess.PIPE,
            env=_inherited(launch.variables) | launch.environment,
            cwd=launch.directory,
            pass_fds=launch.descriptors,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._stdout = self._process.stdout.fileno()
        self._open = {self._stdout} | ({self._process.stderr.fileno()} if self._process.stderr else set())
        self._wake = wake
        self._selector = selectors.DefaultSelector()
        for descriptor in (*self._open, wake.descriptor):
            os.set_blocking(descriptor, False)
            self._selector.register(descriptor, selectors.EVENT_READ)
        self._gone_at: float | None = None
        self._is_left = False
        self.identity = ProcessIdentity.of(self._process.pid)

    def __enter__(self) -> "ChildProcess[R]":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        if not self._is_left:
            try:
                self._process.wait(LEAVE_SECONDS)
            except subprocess.TimeoutExpired:
                self._is_left = True
        if self._is_left:
            disown(self._process)
        self._selector.close()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                # Input that the process has not read is dropped.
                with suppress(BrokenPipeError):
                    pipe.close()

    def poll(self, timeout_seconds: float, now: Callable[[], float]) -> list[R]:
        """Records that arrive within `timeout_seconds`. Returns early on any output, or when woken by `wake`."""
        records: list[R] = []
        for key, _ in self._selector.select(timeout_seconds):
            if key.fd == self._stdout:
                chunk = self._read(key.fd)
                records += self._reader.feed(chunk, now()) if chunk else []
            elif key.fd == self._wake.descriptor:
                self._wake.read()
            else:
                self._keep(self._read(key.fd))
        return records

    @property
    def is_left(self) -> bool:
        """Whether the process was killed, has not ended, and is no longer waited for."""
        return self._is_left

    @property
    def is_finished(self) -> bool:
        """Whether the process has ended and all its output was read, or it was abandoned.

        Other processes that still have its output open are waited for only briefly.
        """
        if self._is_left:
            return True
        if self._process.poll() is None:
            return False
        now = time.monotonic()
        self._gone_at = now if self._gone_at is None else self._gone_at
        return not self._open or now - self._gone_at > _OUTPUT_PATIENCE_SECONDS

    def leave(self) -> bool:
        """Stop waiting for a process that was killed; returns whether it is still there."""
        self._is_left = self._process.poll() is None
        return self._is_left

    def finish(self) -> tuple[int, list[R]]:
        """Exit status (negative: the signal that ended the process, or should have), and the records that only the end
        of its output completes."""
        status = -signal.SIGKILL if self._is_left else self._process.wait()
        return status, self._reader.finish(status)

    @property
    def error_text(self) -> str:
        """The end of the engine's standard error, as text."""
        return self._log_tail.decode("utf-8", "replace").strip()

    def send(self, line: bytes) -> None:
        """Write a line to the process's standard input, unless it is gone."""
        assert self._process.stdin is not None, "started with takes_input"
        with suppress(BrokenPipeError):
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def ask_to_stop(self, number: signal.Signals) -> None:
        if self._process.poll() is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """Kill the engine and whatever it started."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def _read(self, descriptor: int) -> bytes:
        try:
            chunk = os.read(descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            return b""
        if not chunk:
            self._selector.unregister(descriptor)
            self._open.discard(descriptor)
        return chunk

    def _keep(self, chunk: bytes) -> None:
        if not chunk or self._log_path is None:
            return
        self._log_tail = (self._log_tail + chunk)[-4096:]
        try:
            with open(self._log_path, "ab", opener=open_regular) as log:
                room = _LOG_LIMIT_BYTES - log.tell()
                if room > 0:
                    log.write(chunk[:room])
        except OSError as error:
            # The last output is in memory, and a full disk must not end the run.
            if not durable.is_full(error):
                raise


def failure_text(end: EngineEnd | None, error_text: str, status: int) -> str:
    """Message of an engine's failure: from its `end` record, and from standard error where that has more."""
    errors = "; ".join(line.strip() for line in error_text.splitlines()[-_LAST_LINES:] if line.strip())
    said = end.message if end is not None else ""
    # This project's engines write the message of their `end` to standard error too, after their name.
    if errors and errors not in said and not (said and errors.endswith(said)):
        said = f"{said}; it wrote: {errors[-_LAST_CHARACTERS:]}" if said else errors[-_LAST_CHARACTERS:]
    return said or status_text(status)


def status_text(status: int) -> str:
    """Exit status as text, or the signal that ended the process where it is negative."""
    if status >= 0:
        return f"exit status {status}"
    name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
    return f"it was ended by {name} and said nothing"
