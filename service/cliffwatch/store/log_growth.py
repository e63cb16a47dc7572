"""Detect a SQLite write-ahead log that keeps growing because another process reads an old state of the database.

SQLite restarts its log only when no reader needs what is in it: a forgotten shell with an open transaction keeps it
growing for days. The service cannot end that; it logs a warning with the processes that have the file open.
"""

import logging
import os
import sqlite3
from pathlib import Path

from cliffwatch.base.units import format_size
from cliffwatch.store.sqlite_file import identity_of, logs_of

_LOG = logging.getLogger(__name__)
#: Size from which a log is suspected: a log is begun anew at some 4 MiB, and a busy hour needs far less than this.
LIMIT_BYTES = 64 * 1024**2
#: Factor of growth after which the warning is repeated.
_AGAIN = 4


class LogGrowth:
    """Periodic check of one database's write-ahead log."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._next_bytes = limit_bytes
        self._is_suspected = False

    def look(self, path: Path, connection: sqlite3.Connection) -> None:
        """Check the log's size, and warn if it has grown and cannot be restarted. Raises sqlite3.Error.

        The warning is repeated when the log has grown further.
        """
        log, _ = logs_of(path)
        try:
            size = log.stat().st_size
        except OSError:
            return
        if size < self._limit_bytes:
            self._next_bytes, self._is_suspected = self._limit_bytes, False
            return
        _, frames, taken_over = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        was_suspected, self._is_suspected = self._is_suspected, frames > taken_over
        # A log that is checked during a write may only seem to be held: two checks in a row must find it so.
        if not (was_suspected and self._is_suspected) or size < self._next_bytes:
            return
        self._next_bytes = size * _AGAIN
        users = ", ".join(str(process) for process in users_of(path)) or "none that can be seen"
        _LOG.warning(
            "the write-ahead log %s has grown to %s, since another process reads an old state of the database and does "
            "not end; besides the service these have it open: %s; end the one that reads",
            log,
            format_size(size),
            users,
        )


def users_of(path: Path, proc: Path = Path("/proc")) -> list[int]:
    """Pids of other processes that have the file open, as far as this user may see them."""
    identity = identity_of(path)
    found = []
    for directory in proc.glob("[0-9]*"):
        if int(directory.name) == os.getpid():
            continue
        try:
            opened = list((directory / "fd").iterdir())
        except OSError:
            continue
        if any(identity_of(each) == identity for each in opened):
            found.append(int(directory.name))
    return sorted(found)
