"""Start the service as a background process, find it again, and stop it.

`service.json` in the state directory identifies the process by pid, start time and boot, so that a pid that was reused
by another process is never mistaken for the service.
"""

import json
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.base.clock import Clock, wait_until
from cliffwatch.base.durable import PRIVATE_DIRECTORY, write_json_durably
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.logs import open_log
from cliffwatch.base.processes import ProcessIdentity, disown, start_detached
from cliffwatch.base.units import format_length

PROCESS_FILE = "service.json"
LOG_FILE = "service.log"
_LOG_TAIL_LINES = 20


@dataclass(frozen=True, slots=True)
class Daemon:
    """A running service: its process, and the URL at which it listens."""

    process: ProcessIdentity
    url: str


def find_daemon(state_directory: Path) -> Daemon | None:
    """The service that was started for this state directory, if it is still alive."""
    try:
        body = json.loads((state_directory / PROCESS_FILE).read_text(encoding="utf-8"))
        daemon = Daemon(ProcessIdentity.from_json(body["process"]), str(body["url"]))
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None
    return daemon if daemon.process.is_alive() else None


def start_daemon(state_directory: Path, url: str, arguments: list[str]) -> Daemon:
    """Start `cliffwatch` with `arguments` in a session of its own, its output going to service.log. Raises Problem."""
    try:
        state_directory.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        log = open_log(state_directory / LOG_FILE)
    except OSError as error:
        detail = f"the state directory {state_directory} cannot be made: {error.strerror}; name another"
        raise Problem(Code.BAD_REQUEST, detail) from error
    with log:
        process = start_detached([sys.executable, "-m", "cliffwatch.cli.main", *arguments], log, state_directory)
    identity = ProcessIdentity.of(process.pid)
    if identity is None:
        raise _did_not_start(state_directory, process)
    try:
        remember_daemon(state_directory, Daemon(identity, url))
    except OSError as error:
        # Without the process file no command could find or stop the process.
        process.kill()
        process.wait()
        detail = f"the state directory {state_directory} takes nothing: {error.strerror}; make room there"
        raise Problem(Code.NOT_READY, detail) from error
    disown(process)
    return Daemon(identity, url)


def remember_daemon(state_directory: Path, daemon: Daemon) -> None:
    """Write the process file, by which the service is found again. Raises OSError."""
    write_json_durably(state_directory / PROCESS_FILE, {"process": daemon.process.to_json(), "url": daemon.url})


def _did_not_start(state_directory: Path, process: "subprocess.Popen[bytes]") -> Problem:
    process.wait()
    return Problem(Code.NOT_READY, f"the service did not start; {log_tail(state_directory)}")


def stop_daemon(daemon: Daemon, clock: Clock, grace_seconds: float) -> bool:
    """Stop the service; returns False if it had to be killed. Runs have their own processes and continue."""
    if not daemon.process.send(signal.SIGTERM):
        return True
    if wait_until(lambda: not daemon.process.is_alive(), clock, grace_seconds):
        return True
    daemon.process.send(signal.SIGKILL)
    return False


def forget_daemon(state_directory: Path) -> None:
    """Remove the process file. Failure is ignored, since the file then names a process that has ended."""
    with suppress(OSError):
        (state_directory / PROCESS_FILE).unlink()


def log_tail(state_directory: Path) -> str:
    """The last lines of the service's log, below a line with its path; or why it cannot be read."""
    path = state_directory / LOG_FILE
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_TAIL_LINES:]
    except OSError as error:
        return f"its log {path} cannot be read: {error.strerror}"
    return "\n".join([f"the end of {path}:", *(f"  {line}" for line in lines)])


def not_ready(state_directory: Path, waited_seconds: float) -> Problem:
    detail = f"the service is not ready after {format_length(round(waited_seconds))}; {log_tail(state_directory)}"
    return Problem(Code.NOT_READY, detail)
