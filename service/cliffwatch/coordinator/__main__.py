"""`python -m cliffwatch.coordinator RUN_DIRECTORY`: execute the run whose journal is in that directory."""

import signal
import sys
from pathlib import Path

from pydantic import ValidationError

from cliffwatch.base import locks
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.base.privacy import keep_private
from cliffwatch.coordinator.abandoned import close, is_given_up
from cliffwatch.coordinator.context import RunContext, wake_on
from cliffwatch.coordinator.place import LocalPlace
from cliffwatch.coordinator.run import execute_run
from cliffwatch.journal import files
from cliffwatch.model.settings import read_settings

#: Exit status when another worker executes the run.
ALREADY_RUNNING = 4
#: Exit status when the journal cannot be opened.
CANNOT_RUN = 3

#: How long to wait for the lock: a check whether a worker is alive holds it for an instant.
_LOCK_PATIENCE_SECONDS = 1.0


def _take_lock(path: Path) -> bool:
    """Acquire the run's lock until this process ends; returns False when another worker holds it."""
    try:
        # The descriptor is never closed: the kernel does that when the process has ended.
        locks.hold(path, _LOCK_PATIENCE_SECONDS)
    except TimeoutError:
        return False
    return True


def _refuse(directory: Path, problem: Problem) -> int:
    """Print why the run cannot be executed, and return the exit status.

    The reason is on one line, because the service copies the log's last line into the run's journal.
    """
    reason = "; ".join(line.strip() for line in str(problem).splitlines())
    print(f"the run in {directory} cannot be executed: {reason}", file=sys.stderr)
    return CANNOT_RUN


def main(arguments: list[str]) -> int:
    keep_private()
    directory = Path(arguments[0]).resolve()
    if not _take_lock(directory / files.WORKER_LOCK):
        print(f"another worker executes the run in {directory}", file=sys.stderr)
        return ALREADY_RUNNING
    wake_fd, signals = wake_on(signal.SIGTERM, signal.SIGINT)
    try:
        if is_given_up(directory):
            close(directory)
            return 0
        context = RunContext.open(directory, read_settings(), wake_fd, signals)
    except ValidationError as error:
        # order.json was written by another version, or by hand.
        return _refuse(directory, Problem(Code.WORKLOAD_INVALID, f"{files.ORDER} is not valid", faults_of(error)))
    except Problem as problem:
        return _refuse(directory, problem)
    context.beat_now()
    execute_run(context, LocalPlace())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
