"""One engine process: started, read, asked to stop, killed.

The engine dies with the worker (PR_SET_PDEATHSIG), so a worker that is killed leaves nothing that goes on writing to a
drive. Its standard error is kept in engine.log, up to a limit.
"""

import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from cliffwatch.base import durable
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.processes import ProcessIdentity, disown
from cliffwatch.base.regular_files import open_regular
from cliffwatch.engines.contract import Launch, Translator
from cliffwatch.journal import files
from cliffwatch.model.window import EngineEnd, EngineRecord
from cliffwatch.worker.heartbeat import LEAVE_SECONDS

#: So much of what an engine wrote to standard error goes into a failure's message.
_LAST_LINES, _LAST_CHARACTERS = 3, 500

_LOG_LIMIT_BYTES = 1 << 20
_CHUNK_BYTES = 1 << 16
#: How long an engine's output is read once the engine is gone, where something else has it open.
_OUTPUT_PATIENCE_SECONDS = 5.0


class EngineProcess:
    """A running engine. Use as a context manager: leaving it kills what is left of the process group."""

    def __init__(self, launch: Launch, translator: Translator, log_directory: Path, wake_fd: int) -> None:
        """`wake_fd` becomes readable when a signal arrives, which ends a wait early."""
        self._translator = translator
        self._log_path = log_directory / files.ENGINE_LOG
        self._log_tail = b""
        if shutil.which(launch.command[0]) is None:
            raise Problem(Code.COMPONENT_MISSING, f"{launch.command[0]} is not installed, or not on PATH")
        # setpriv (util-linux) rather than preexec_fn: the worker has threads, and code between fork and exec may hang.
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *launch.command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | launch.environment,
            cwd=launch.directory,
            pass_fds=launch.descriptors,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._stdout = self._process.stdout.fileno()
        self._stderr = self._process.stderr.fileno()
        self._wake_fd = wake_fd
        self._selector = selectors.DefaultSelector()
        for descriptor in (self._stdout, self._stderr, wake_fd):
            os.set_blocking(descriptor, False)
            self._selector.register(descriptor, selectors.EVENT_READ)
        self._open = {self._stdout, self._stderr}
        self._gone_at: float | None = None
        self._is_left = False
        self.identity = ProcessIdentity.of(self._process.pid)

    def __enter__(self) -> "EngineProcess":
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
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def poll(self, timeout_seconds: float, now: Callable[[], float]) -> list[EngineRecord]:
        """Records that arrived within the time. Returns early when there are some, or when a signal came in."""
        records: list[EngineRecord] = []
        for key, _ in self._selector.select(timeout_seconds):
            if key.fd == self._stdout:
                chunk = self._read(key.fd)
                records += self._translator.feed(chunk, now()) if chunk else []
            elif key.fd == self._stderr:
                self._keep(self._read(key.fd))
            else:
                os.read(key.fd, _CHUNK_BYTES)
        return records

    @property
    def is_left(self) -> bool:
        """True when it was killed, is there all the same, and is not waited for any more."""
        return self._is_left

    @property
    def is_finished(self) -> bool:
        """True when all output was read and the process is gone, or left.

        What it started may have its output open for as long as it likes, and is not waited for.
        """
        if self._is_left:
            return True
        if self._process.poll() is None:
            return False
        now = time.monotonic()
        self._gone_at = now if self._gone_at is None else self._gone_at
        return not self._open or now - self._gone_at > _OUTPUT_PATIENCE_SECONDS

    def leave(self) -> bool:
        """Do not wait any more for a process that was killed; says whether it is there."""
        self._is_left = self._process.poll() is None
        return self._is_left

    def finish(self) -> tuple[int, list[EngineRecord]]:
        """Exit status (negative: the signal that ended it, or should have) and the records that only the end
        completes."""
        status = -signal.SIGKILL if self._is_left else self._process.wait()
        return status, self._translator.finish(status)

    @property
    def error_text(self) -> str:
        """The end of what the engine wrote to standard error."""
        return self._log_tail.decode("utf-8", "replace").strip()

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
        if not chunk:
            return
        self._log_tail = (self._log_tail + chunk)[-4096:]
        try:
            with open(self._log_path, "ab", opener=open_regular) as log:
                room = _LOG_LIMIT_BYTES - log.tell()
                if room > 0:
                    log.write(chunk[:room])
        except OSError as error:
            # What the engine said last is in memory, and a disk that is full ends no run.
            if not durable.is_full(error):
                raise


def failure_text(end: EngineEnd | None, error_text: str, status: int) -> str:
    """What an engine said when it ended: its own last word, and the end of its standard error where that says more."""
    errors = "; ".join(line.strip() for line in error_text.splitlines()[-_LAST_LINES:] if line.strip())
    said = end.message if end is not None else ""
    # The engines of our own write the same there as they say at their end, behind their name.
    if errors and errors not in said and not (said and errors.endswith(said)):
        said = f"{said}; it wrote: {errors[-_LAST_CHARACTERS:]}" if said else errors[-_LAST_CHARACTERS:]
    return said or status_text(status)


def status_text(status: int) -> str:
    """Of a process that said nothing: its exit status, or by what signal it was ended where that is negative."""
    if status >= 0:
        return f"exit status {status}"
    name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
    return f"it was ended by {name} and said nothing"
