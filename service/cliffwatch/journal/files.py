"""File names of a journal and the few primitives that make a write durable."""

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
REPORT_JSON = "report.json"
REPORT_HTML = "report.html"
REPORT_PNG = "report.png"


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
        with temporary.open("wb") as file:
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
