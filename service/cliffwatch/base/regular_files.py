"""Open a regular file without blocking on a FIFO, a socket or a device in its place."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from cliffwatch.base.durable import PRIVATE_FILE


class NotAFile(OSError):
    """Path that leads to something other than a regular file."""


def open_regular(path: str | Path, flags: int) -> int:
    """Open a regular file and return its descriptor; serves as an opener for `open`. Raises OSError, NotAFile.

    A new file is for its owner only.
    """
    # Without O_NONBLOCK, opening a FIFO blocks until its other end is opened. For a regular file it changes nothing.
    try:
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, PRIVATE_FILE)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        raise _not_a_file(path) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_a_file(path)
    return descriptor


def reading(path: Path) -> BinaryIO:
    """Open a regular file for reading. Raises OSError, NotAFile."""
    return open(path, "rb", opener=open_regular)


def read_regular(path: Path) -> bytes:
    """Content of a regular file. Raises OSError, NotAFile."""
    with reading(path) as file:
        return file.read()


def _not_a_file(path: str | Path) -> NotAFile:
    return NotAFile(errno.EINVAL, "it is no file; remove it", str(path))
