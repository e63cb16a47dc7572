"""Locks between processes, on a file or a directory: only one process holds a lock at a time.

The kernel releases a lock when its last descriptor is closed, so a lock ends with its process, however that ends: the
holder of a lock is alive. `is_held` takes the lock for an instant, so a process that takes a lock must be prepared to
wait.
"""

import errno
import fcntl
import math
import os
import time
from pathlib import Path

from cliffwatch.base.regular_files import open_regular

_POLL_SECONDS = 0.01


def take(descriptor: int, name: Path, patience_seconds: float = math.inf) -> None:
    """Lock an open `descriptor` until it is closed; with a patience of 0 only one attempt is made.

    Raises OSError; TimeoutError, with `name` in it, while another process holds the lock for all that time.
    """
    if math.isinf(patience_seconds):
        return fcntl.flock(descriptor, fcntl.LOCK_EX)
    deadline = time.monotonic() + patience_seconds
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                held = f"has held its lock for {patience_seconds:g} s" if patience_seconds > 0 else "holds its lock"
                raise TimeoutError(errno.ETIMEDOUT, f"another process {held}", str(name)) from None
            time.sleep(_POLL_SECONDS)


def hold(path: Path, patience_seconds: float = math.inf) -> int:
    """Lock a file, creating it if needed, until the returned descriptor is closed.

    Raises OSError, as `take` does.
    """
    descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
    try:
        take(descriptor, path, patience_seconds)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def is_held(path: Path) -> bool:
    """Whether a living process holds the lock of a file or directory; False if that does not exist. Raises OSError."""
    try:
        # Opening a FIFO without O_NONBLOCK blocks until its other end is opened.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # Shared, so that concurrent checks do not take one another for a holder.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
