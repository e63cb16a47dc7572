"""Machine-wide lock on resources that all checkouts share: loop devices, mounts, processor time.

Tests that attach devices hold it shared; tests that list all devices or compare times hold it exclusively.
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
    """Hold the lock; prints to stderr when it waits for tests of another checkout. Raises OSError if it cannot lock."""
    # Shared by tests of every user, the first of which creates it.
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
