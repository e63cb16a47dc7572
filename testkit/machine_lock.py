"""Lock on what a machine has once (loop devices, mounts, its processors' time), for all checkouts on it.

Shared by tests that attach devices; exclusive for those that list them all, or that compare times.
"""

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MACHINE_LOCK = Path("/var/lock/cliffwatch-tests")


@contextmanager
def machine_lock(*, exclusive: bool, path: Path = MACHINE_LOCK) -> Iterator[None]:
    """Hold the lock; says so on standard error while another checkout's tests have to end first. Raises OSError."""
    # For tests of every user, the first of which makes it.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    how = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    try:
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for {path}: tests of another checkout run on this machine", file=sys.stderr, flush=True)
            fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)
