"""File names of a journal and the few primitives that make a write durable."""

import errno
import json
import os
from pathlib import Path
from typing import Any

ORDER = "order.json"
WORKLOAD = "workload.yaml"
FACTS = "facts.json"
WINDOWS = "windows.jsonl"
LATENCY = "latency.hlog"
EVENTS = "events.jsonl"
WORKER = "worker.json"
WORKER_LOCK = "worker.lock"
ENGINE_LOG = "engine.log"
IMPORTED = "imported.json"
#: 9999-12-31, the last day that a time can be written of.
LAST_MOMENT = 253_402_300_799.0
REPORT_JSON = "report.json"
REPORT_HTML = "report.html"
REPORT_PNG = "report.png"

#: Modes of what a run leaves: whoever can read a lock can hold it, so nobody but the owner reads anything.
PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700


def is_full(error: OSError) -> bool:
    """Whether a write failed for want of room, which may be made: of the disk, or of the user's share of it."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def may_pass(error: OSError) -> bool:
    """Whether a write failed for a reason that may go away by itself: no room, or a lock that was held too long."""
    return is_full(error) or error.errno == errno.ETIMEDOUT


def private(path: str, flags: int) -> int:
    """An opener for `open` that makes files for their owner alone."""
    return os.open(path, flags, PRIVATE_FILE)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, content: str | bytes) -> None:
    """Replace a file: after this call, and after a crash during it, the old or the new content is there, whole.

    Raises OSError, and then leaves nothing of the new content: a disk that is full stays no fuller.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(temporary, "wb", opener=private) as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def write_json_durably(path: Path, content: Any) -> None:
    write_durably(path, json.dumps(content, indent=2, sort_keys=True) + "\n")


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte; the kernel may take fewer than it was given (a full disk raises OSError)."""
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def append_durably(descriptor: int, content: bytes) -> None:
    """Append to a file that nobody else writes to meanwhile: on disk when this returns.

    Raises OSError, and then takes back what had been written of it: half of it is worth nothing to anybody.
    """
    size_bytes = os.fstat(descriptor).st_size
    try:
        write_all(descriptor, content)
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size_bytes)
        raise
