"""Start a run's worker, check whether it is alive, and stop it.

A worker is alive while it holds the lock of its journal; its pid in the heartbeat serves to signal it, and to check it
where the lock file was removed.
"""

import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

from cliffwatch.base import locks
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.logs import open_log
from cliffwatch.base.processes import processes_with, start_detached
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.journal import Event, EventLog, EventType, JournalReader, files
from cliffwatch.journal.state import change_state, status_of
from cliffwatch.model.run_state import RunState
from cliffwatch.stack.systemd import scope_for

_WORKER_OUTPUT = "worker.log"
_SETTLE_SECONDS = 5.0
_BY_FORCE = "a forced stop was requested"


def launch(directory: Path) -> subprocess.Popen[bytes]:
    """Start the worker of a run, which outlives the process that starts it."""
    scope = scope_for(directory.name, attempt=secrets.token_hex(2))
    command = [*scope, sys.executable, *_arguments(directory)]
    with open_log(log_of(directory)) as log:
        return start_detached(command, log, Path("/"))


def _arguments(directory: Path) -> list[str]:
    return ["-m", "cliffwatch.coordinator", str(directory)]


def has_worker(directory: Path) -> bool:
    """Whether a worker executes the run, by its command line: a journal that is gone has no lock and no heartbeat."""
    return bool(processes_with(_arguments(directory)))


def log_of(directory: Path) -> Path:
    """Path of the log file of a run's workers."""
    return directory / _WORKER_OUTPUT


def worker_is_alive(directory: Path) -> bool:
    """Whether a worker executes the run."""
    lock = directory / files.WORKER_LOCK
    if lock.exists():
        return locks.is_held(lock)
    # A worker still holds a lock file that was removed, and the lock cannot be seen.
    heartbeat = Heartbeat.read(directory)
    return heartbeat is not None and heartbeat.worker.is_alive() and not heartbeat.worker.is_killed()


def metrics_port_of(directory: Path) -> int | None:
    """Metrics port of the run's last worker; None where the worker has none, or no worker was started."""
    heartbeat = Heartbeat.read(directory)
    return None if heartbeat is None else heartbeat.metrics_port


def request_stop(directory: Path, force: bool) -> None:
    """Stop a run: gracefully, or (`force`) by killing its worker and engine; the report is made either way.

    Raises Problem: wrong_state when the run can no longer be stopped, not_ready when a frozen worker holds its journal.
    """
    status = status_of(stored.event for stored in JournalReader(directory).events())
    if status is None or status.state is not RunState.STOPPING:
        _enter_stopping(directory, force)
    if force:
        kill_worker(directory, _BY_FORCE)
    elif (heartbeat := Heartbeat.read(directory)) is not None:
        heartbeat.worker.send(signal.SIGTERM)


def _enter_stopping(directory: Path, force: bool) -> None:
    def enter() -> None:
        change_state(EventLog(directory), RunState.STOPPING, time.time(), {"force": force})

    try:
        enter()
    except TimeoutError as error:
        if not force:
            detail = f"{error}; where it is the run's worker, which may be frozen, `--force` kills it"
            raise Problem(Code.NOT_READY, detail) from error
        kill_worker(directory, _BY_FORCE)
        enter()


def kill_worker(directory: Path, reason: str) -> None:
    """Kill a run's worker and engine, and wait a few seconds until the worker is gone.

    A worker that waits in the kernel for a drive may never end: its lock is removed, so that another worker can make
    the report.
    """
    heartbeat = Heartbeat.read(directory)
    if heartbeat is None:
        return
    log, note = EventLog(directory), Event(time.time(), EventType.NOTE, "worker_killed", {"reason": reason})
    noted = _append_unless_held(log, note)
    heartbeat.worker.send(signal.SIGKILL)
    deadline = time.monotonic() + _SETTLE_SECONDS
    # The lock ends with the last thread of the process, maybe a moment after the process counts as dead.
    while (heartbeat.worker.is_alive() or worker_is_alive(directory)) and time.monotonic() < deadline:
        time.sleep(0.01)
    kill_orphans(directory)
    if not noted:
        log.append(note)
    if heartbeat.worker.is_killed():
        # A lock cannot be taken from a process; the next worker makes a lock file of its own.
        (directory / files.WORKER_LOCK).unlink(missing_ok=True)


def _append_unless_held(log: EventLog, event: Event) -> bool:
    """Append an event. False where the file's lock is held, for example by a frozen worker that is to be killed."""
    try:
        log.append(event)
    except TimeoutError:
        return False
    return True


def kill_orphans(directory: Path) -> None:
    """Kill the part and engine processes that a dead worker named in its heartbeat, if they still live."""
    heartbeat = Heartbeat.read(directory)
    for process in (*heartbeat.parts, *heartbeat.engines) if heartbeat is not None else ():
        process.send(signal.SIGKILL)
