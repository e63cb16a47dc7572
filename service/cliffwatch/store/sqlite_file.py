"""Identity of a SQLite database file, so that no other file is opened in its place."""

import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Dialect
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import ConnectionPoolEntry

#: Identity of a file: its device and inode.
Identity = tuple[int, int]
LogIdentities = tuple[Identity | None, Identity | None]


class SqliteFile:
    """A SQLite file that is created only once: if it is gone later, an empty one must not take its place unnoticed.

    After `require_this`, a file that took its place is not opened, nor is another write-ahead log created: what is
    written to either would be lost.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mode = "rwc"
        self._identity: Identity | None = None
        self._log_identities: LogIdentities | None = None

    def require_this(self) -> None:
        """From now on accept only the file that is at `path` now, with its current write-ahead log."""
        self._identity, self._log_identities = identity_of(self.path), log_identities_of(self.path)

    def fault(self) -> str | None:
        """Why nothing may be written, and what to do; None where the file and its log are those of `require_this`."""
        if self._identity is None:
            return None
        present = identity_of(self.path)
        if present is None:
            remedy = "put the file back, or restart the service, which makes a new one of the journals, without"
            return f"the database file {self.path} is gone; {remedy} schedules and tokens"
        if present != self._identity:
            return f"the database file {self.path} was replaced by another; restart the service, so that it is used"
        if log_identities_of(self.path) != self._log_identities:
            return f"the write-ahead log of the database {self.path}, or its index, is gone; restart the service"
        return None

    def require_well(self) -> None:
        """Raise OperationalError where `fault` returns a reason."""
        if (fault := self.fault()) is not None:
            raise OperationalError(None, None, sqlite3.OperationalError(fault))

    def is_other_with_this_log(self) -> bool:
        """Whether the file at `path` was replaced by another, but the write-ahead log beside it was not."""
        is_other = identity_of(self.path) not in (None, self._identity)
        return is_other and log_identities_of(self.path) == self._log_identities

    def connect(
        self, dialect: Dialect, record: ConnectionPoolEntry, arguments: list[object], options: dict[str, Any]
    ) -> sqlite3.Connection:
        """Connect to the file, for SQLAlchemy's `do_connect`. Raises sqlite3.OperationalError."""
        connection: sqlite3.Connection = sqlite3.connect(uri_of(self.path, self._mode), uri=True, **options)
        self._mode = "rw"
        # The file is opened by now, its log by the first statement.
        if (fault := self.fault()) is not None:
            connection.close()
            raise sqlite3.OperationalError(fault)
        return connection


def uri_of(path: Path, mode: str) -> str:
    return f"file:{quote(str(path.absolute()))}?mode={mode}"


def logs_of(path: Path) -> tuple[Path, Path]:
    """Paths of a database's write-ahead log, and of the log's index, which all processes that use the log share."""
    return path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")


def log_identities_of(path: Path) -> LogIdentities:
    """Identities of the write-ahead log and its index, as far as they are there."""
    log, index = logs_of(path)
    return identity_of(log), identity_of(index)


def identity_of(path: Path) -> Identity | None:
    """Identity of a file, by device and inode; None where it is missing or cannot be examined."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
