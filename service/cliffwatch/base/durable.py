"""Durable file writes: atomic replacement, fsync, and files that only their owner can read."""

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

#: Modes of a run's files, for the owner only: a process that can read a lock file can hold its lock.
PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700


def is_full(error: OSError) -> bool:
    """Whether a write failed because the disk, or the user's quota, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def takes_nothing(error: OSError) -> bool:
    """Whether a write failed because its disk is full, read-only, or returns I/O errors."""
    return is_full(error) or error.errno in (errno.EROFS, errno.EIO)


def is_temporary(error: OSError) -> bool:
    """Whether a write failed for a reason that may go away by itself: a full disk or quota, or a timeout of a lock."""
    return is_full(error) or error.errno == errno.ETIMEDOUT


def private(path: str, flags: int) -> int:
    """Opener for `open` that creates files for their owner only."""
    return os.open(path, flags, PRIVATE_FILE)


def sync_directory(directory: Path) -> None:
    """Sync a directory: files created, renamed or removed in it stay so after a power cut. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def replacement(path: Path, *, is_durable: bool = True, is_private: bool = True) -> Iterator[BinaryIO]:
    """Replace a file atomically: yields a temporary file, which is renamed to `path` when the block ends.

    With `is_durable` the new content is on disk then, and after a crash either the old or the new content is complete.
    Raises OSError. After an error before the rename, such as one in the block, the old content stays and the temporary
    file is removed.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(unfinished, "wb", opener=private if is_private else None) as file:
            yield file
            if is_durable:
                file.flush()
                os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    if is_durable:
        sync_directory(path.parent)


@contextmanager
def output_file(path: Path) -> Iterator[BinaryIO]:
    """Open an output file that the user named: it appears under its name once it is complete; the umask sets its mode.

    Raises OSError, and then leaves no file.

    A path that exists and is no regular file is written to directly, since replacing it would destroy it: a device such
    as /dev/null, a pipe, a link such as /dev/stdout.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        with path.open("wb") as file:
            yield file
        return
    with replacement(path, is_durable=False, is_private=False) as file:
        yield file


def write_durably(path: Path, content: str | bytes) -> None:
    """Replace a file durably, as `replacement` does, readable by its owner only. Raises OSError."""
    with replacement(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def write_json_durably(path: Path, content: Any) -> None:
    write_durably(path, json.dumps(content, indent=2, sort_keys=True) + "\n")


def write_all(descriptor: int, content: bytes) -> None:
    """Write all bytes, also if the kernel accepts only a part at a time. Raises OSError, such as on a full disk."""
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def append_durably(descriptor: int, content: bytes) -> None:
    """Append to a file: the content is on disk when this returns. The caller must exclude other writers of the file.

    Raises OSError, and then truncates what was written: a partial record is of no use.
    """
    size_bytes = os.fstat(descriptor).st_size
    try:
        write_all(descriptor, content)
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size_bytes)
        raise
