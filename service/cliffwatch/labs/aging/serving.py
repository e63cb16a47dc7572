"""The process that serves a drive's file: `cliffwatch-drive mount`, in a session of its own."""

import os
import signal
import subprocess
from pathlib import Path

from cliffwatch.base.clock import Clock, wait_until
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.logs import last_line_of, open_log
from cliffwatch.base.processes import ProcessIdentity, disown, start_detached
from cliffwatch.base.programs import DRIVE
from cliffwatch.labs.aging.description import Description
from cliffwatch.labs.aging.directories import DriveDirectory
from cliffwatch.labs.aging.machine import BUSY_PATIENCE_SECONDS, flash_numbers, unmount
from cliffwatch.labs.aging.users import mounts_elsewhere, process_ids_of
from cliffwatch.machine.sysfs import PROC, read_text
from cliffwatch.model.settings import environment_of_children

READY_PATIENCE_SECONDS = 60.0
#: Before an orderly exit the process makes the content durable, which may be as much as the whole drive.
END_PATIENCE_SECONDS = 600.0
_KILL_PATIENCE_SECONDS = 30.0
NICENESS = -15
#: Exit status of the program for invalid input; other statuses are failures of the system.
_BAD_INPUT = 2


def serve(place: DriveDirectory, description: Description, program: Path, clock: Clock) -> None:
    """Start the process that serves the drive's file, and wait until it is ready. Raises Problem with the process's
    error message if it does not become ready, after cleaning up."""
    # An error message must come from this attempt.
    for path in (place.ready, place.log):
        path.unlink(missing_ok=True)
    lock = place.lock_for_serving()
    try:
        process = _start(place, description, program, lock)
    finally:
        os.close(lock)
    settled = wait_until(
        lambda: place.served() is not None or process.poll() is not None, clock, READY_PATIENCE_SECONDS
    )
    if place.served() is not None and process.poll() is None:
        disown(process)
        return
    if not settled:
        process.kill()
    status = process.wait()
    if flash_numbers(place):
        unmount(place.flash, clock, lazily=True)
    # The path of the drive's copy of the profile is cut: the copy is removed, and the user knows another file.
    said = last_line_of(place.log).removeprefix(f"{DRIVE}: ").removeprefix(f"{place.profile}: ")
    if said.startswith("--backing: "):
        said = f"its content: {said.removeprefix('--backing: ')}"
    code = Code.DRIVE_INVALID if status == _BAD_INPUT else Code.DRIVE_UNAVAILABLE
    raise Problem(code, f"the drive {place.name} cannot be served: {said or f'{DRIVE} ended with status {status}'}")


def _start(place: DriveDirectory, description: Description, program: Path, lock: int) -> "subprocess.Popen[bytes]":
    command = [
        # A real drive has its own processors, so the modelled one must not be late because the machine is busy.
        *("nice", "-n", str(NICENESS), str(program), "mount", "--profile", str(place.profile)),
        *("--directory", str(place.flash), "--backing", str(place.content), "--state", str(place.age)),
        *(f"--serial={description.serial}", "--listen", "127.0.0.1:0"),
    ]
    with place.ready.open("wb") as said, open_log(place.log) as log:
        try:
            return start_detached(command, log, place.directory, environment_of_children(), said, inherited=(lock,))
        except OSError as error:
            raise Problem(Code.DRIVE_UNAVAILABLE, f"{program} cannot be started: {error.strerror}") from error


def end(place: DriveDirectory, clock: Clock, *, keep_content: bool) -> None:
    """End the serving process and unmount the drive's file. Detach all loop devices before you call this.

    With `keep_content` the process makes content and age durable, which takes as long as the disk below needs;
    without it, the process is killed. Raises Problem(conflict) when the file is still in use.
    """
    is_alive = place.is_served()
    if is_alive and not keep_content:
        _signal(place, signal.SIGKILL)
        wait_until(lambda: not place.is_served(), clock, _KILL_PATIENCE_SECONDS)
        is_alive = False
    numbers = flash_numbers(place)
    if numbers:
        # Unmounting makes the process exit in an orderly way.
        unmount(place.flash, clock, lazily=not is_alive)
    elif is_alive:
        _signal(place, signal.SIGTERM)
    elsewhere: list[str] = []

    def is_settled() -> bool:
        nonlocal elsewhere
        elsewhere = mounts_elsewhere(numbers)
        return not place.is_served() or bool(elsewhere)

    if not wait_until(lambda: not place.is_served(), clock, BUSY_PATIENCE_SECONDS):
        # It serves as long as a copy of its mount exists in any namespace; after that it makes the content durable.
        wait_until(is_settled, clock, END_PATIENCE_SECONDS)
    if place.is_served() and elsewhere:
        detail = f"the drive {place.name} is still mounted at {', '.join(elsewhere)}; end that, then detach again"
        raise Problem(Code.CONFLICT, detail)
    if place.is_served():
        raise Problem(Code.CONFLICT, f"the process that serves the drive {place.name} does not end; see {place.log}")
    place.ready.unlink(missing_ok=True)


def require_running(place: DriveDirectory) -> None:
    """Check that the serving process is not stopped, as by SIGSTOP or a debugger. Raises Problem(conflict)."""
    for pid in process_ids_of(place.directory / "alive"):
        state = (read_text(PROC / str(pid) / "stat") or "").rpartition(")")[2].split()[:1]
        if state in (["T"], ["t"]):
            detail = f"process {pid}, which serves the drive {place.name}, is stopped; continue it: kill -CONT {pid}"
            raise Problem(Code.CONFLICT, detail)


def _signal(place: DriveDirectory, number: signal.Signals) -> None:
    for pid in process_ids_of(place.directory / "alive"):
        identity = ProcessIdentity.of(pid)
        if identity is not None and pid != os.getpid():
            identity.send(number)
