"""The file of a SQLite database: which one it is, and that no other is opened in its place."""

import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Dialect
from sqlalchemy.pool import ConnectionPoolEntry

#: Device and inode.
Identity = tuple[int, int]
LogIdentities = tuple[Identity | None, Identity | None]


class SqliteFile:
    """A database file that is made once: when it is gone later, an empty one must not take its place unnoticed.

    Once it is known which file it is and which write-ahead log it has (`require`), no other one is opened, and no other
    log made: what is written there would be gone with the file that has the name.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mode = "rwc"
        self._identity: Identity | None = None
        self._log_identities: LogIdentities | None = None

    def require(self, identity: Identity | None, log_identities: LogIdentities | None = None) -> None:
        """None stands for whichever is there."""
        self._identity, self._log_identities = identity, log_identities

    def connect(
        self, dialect: Dialect, record: ConnectionPoolEntry, arguments: list[object], options: dict[str, Any]
    ) -> sqlite3.Connection:
        """As SQLAlchemy's `do_connect` asks for it. Raises sqlite3.OperationalError."""
        connection: sqlite3.Connection = sqlite3.connect(uri_of(self.path, self._mode), uri=True, **options)
        self._mode = "rw"
        # The file is opened by now, its log by the first statement.
        is_other = self._identity not in (None, identity_of(self.path))
        if is_other or self._log_identities not in (None, log_identities_of(self.path)):
            connection.close()
            raise sqlite3.OperationalError(f"{self.path} is not the database that the service has open")
        return connection


def uri_of(path: Path, mode: str) -> str:
    return f"file:{quote(str(path.absolute()))}?mode={mode}"


def logs_of(path: Path) -> tuple[Path, Path]:
    """The write-ahead log of the database of that name, and the index of that log, which all who use it share."""
    return path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")


def log_identities_of(path: Path) -> LogIdentities:
    """Of both, as far as they are there."""
    log, index = logs_of(path)
    return identity_of(log), identity_of(index)


def identity_of(path: Path) -> Identity | None:
    """None where there is no file, or none that can be looked at."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
