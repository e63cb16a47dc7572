"""Monitor of the service's database: whether it can be used, and whether its file was deleted or replaced.

SQLite goes on writing to a file that was deleted, and all of it is lost with the process. So nothing is written while
the file or its write-ahead log is not the one that the service has open, and the service reports it. PostgreSQL needs
no such check of its files.
"""

import logging
import sqlite3
import threading
import time
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from cliffwatch.base.rounds import Rounds
from cliffwatch.store.database import Database, is_current, is_damage, read_each_table, why_unusable
from cliffwatch.store.log_growth import LogGrowth
from cliffwatch.store.sqlite_file import logs_of, uri_of

_LOG = logging.getLogger(__name__)
PERIOD_SECONDS = 2.0
#: How long `fault` waits for a writer: longer than a write takes, shorter than a health check waits for its answer.
_PROBE_PATIENCE_SECONDS = 1.0
#: Interval of test writes: a lock alone succeeds on a full disk too, and not each check needs to write.
_PROBE_PERIOD_SECONDS = 2.0
#: Timeout for SQLite's locks: longer than any write takes.
_LOCK_PATIENCE_SECONDS = 5.0


class DatabaseMonitor:
    """Background thread that monitors the service's database."""

    def __init__(self, database: Database, log_growth: LogGrowth | None = None) -> None:
        self._database = database
        self._file = database.file
        self._log_growth = log_growth or LogGrowth()
        self._turn = threading.Lock()
        self._rounds = Rounds("database", PERIOD_SECONDS, self.look, "the database could not be checked")
        #: Connection that keeps the file open, so that its write-ahead log stays the same.
        self._held: sqlite3.Connection | None = None
        self._logged = ""
        self._written_at = float("-inf")

    def start(self) -> None:
        self._hold()
        self._rounds.start()

    def stop(self) -> None:
        self._rounds.stop()
        if self._held is not None:
            self._held.close()

    def fault(self) -> str | None:
        """Why the database cannot be used, and what to do; None when it can be read and written."""
        if self._file is not None and (missing := self._file.fault()) is not None:
            return missing
        try:
            now = time.monotonic()
            is_due = now - self._written_at >= _PROBE_PERIOD_SECONDS
            with self._database.session(_PROBE_PATIENCE_SECONDS) as session:
                current = is_current(session)
                if current and is_due:
                    read_each_table(session)
                if self._file is not None and is_due:
                    # An unused number in the file's header: the smallest thing that can be written.
                    session.execute(text("PRAGMA user_version = 0"))
                if self._file is None and session.scalar(text("SHOW transaction_read_only")) == "on":
                    return "the database takes no writes; end its read-only mode"
        except SQLAlchemyError as error:
            reason = why_unusable(error)
            if is_damage(error):
                return f"the database is damaged: {reason}; restart the service, which says what can be done"
            return f"the database cannot be written: {reason}; see who holds it, and that its disk and server are well"
        if is_due:
            self._written_at = now
        return None if current else "the database is not of this version; a restart brings it up to date"

    def look(self) -> None:
        """Check the file once, and log a fault when it is first seen."""
        if self._file is None or self._held is None:
            return
        with self._turn:
            fault = self._file.fault()
            if fault is None:
                self._log_growth.look(self._file.path, self._held)
            elif self._file.is_other_with_this_log():
                # A program that opens the other file would take this log for its own, and damage that file. The content
                # of the log is written to the file that it belongs to, wherever that is by now.
                self._held.execute("PRAGMA wal_checkpoint(PASSIVE)")
                for log in logs_of(self._file.path):
                    log.unlink(missing_ok=True)
            if fault is not None and fault != self._logged:
                _LOG.error("%s", fault)
            self._logged = fault or ""

    def _hold(self) -> None:
        """Keep the file open, and refuse writes to another file in its place. Raises sqlite3.Error."""
        if self._file is not None:
            self._held = _opened(self._file.path)
            self._file.require_this()


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri_of(path, "rw"), uri=True, timeout=_LOCK_PATIENCE_SECONDS, isolation_level=None, check_same_thread=False
    )
    # The file is opened by the first statement, with its write-ahead log.
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return connection
