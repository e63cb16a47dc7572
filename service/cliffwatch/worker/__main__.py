"""`python -m cliffwatch.worker RUN_DIRECTORY`: carry out the run whose journal is there."""

import fcntl
import os
import signal
import sys
import time
from pathlib import Path

from cliffwatch.errors import Problem
from cliffwatch.journal import files
from cliffwatch.privacy import keep_private
from cliffwatch.worker.closing import close, is_given_up
from cliffwatch.worker.context import RunContext, wake_on
from cliffwatch.worker.run import carry_out

#: Exit status when another worker has the run.
ALREADY_CARRIED_OUT = 4
#: Exit status when the journal cannot be opened.
CANNOT = 3

#: Whoever looks whether a worker is alive holds the lock for an instant; that must not turn a new worker away.
_LOCK_TRIES = 50


def _take_lock(path: Path) -> bool:
    """Hold the run's lock until this process ends; False when another worker holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, files.PRIVATE_FILE)
    for _ in range(_LOCK_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        else:
            return True
    os.close(descriptor)
    return False


def main(arguments: list[str]) -> int:
    keep_private()
    directory = Path(arguments[0]).resolve()
    if not _take_lock(directory / files.WORKER_LOCK):
        print(f"another worker carries out the run in {directory}", file=sys.stderr)
        return ALREADY_CARRIED_OUT
    wake_fd, signals = wake_on(signal.SIGTERM, signal.SIGINT)
    try:
        if is_given_up(directory):
            close(directory)
            return 0
        context = RunContext.open(directory, wake_fd, signals)
    except Problem as problem:
        print(f"the run in {directory} cannot be carried out: {problem}", file=sys.stderr)
        return CANNOT
    context.beat_now()
    carry_out(context)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
