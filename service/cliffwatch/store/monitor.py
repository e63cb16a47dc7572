"""The database of a running service: whether it can be used, and its file, should somebody delete it.

SQLite goes on in a file that has no name any more, and everything is gone with the process. So the service looks every
few seconds whether its file is still there, and writes it again from what it holds open. PostgreSQL looks after itself.
"""

import logging
import os
import sqlite3
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from cliffwatch.base.durable import PRIVATE_FILE
from cliffwatch.base.rounds import Rounds
from cliffwatch.store.database import Database, is_current

_LOG = logging.getLogger(__name__)
PERIOD_SECONDS = 2.0
#: How long `fault` waits for a writer: longer than one takes, shorter than whoever asks would wait.
_PROBE_PATIENCE_SECONDS = 1.0
#: A lock is had on a full disk, too, and so what is asked is written now and then, and not each time.
_PROBE_PERIOD_SECONDS = 2.0
_REMEDY = "put the file back or restart the service, which makes a new one and reads the journals into it"


class DatabaseMonitor:
    """Watches over the service's database, in a thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._path = database.path
        self._turn = threading.Lock()
        self._rounds = Rounds("database", PERIOD_SECONDS, self.look, "the database could not be checked")
        self._anchor: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._logged = ""
        self._written_at = float("-inf")

    def start(self) -> None:
        self._hold()
        self._rounds.start()

    def stop(self) -> None:
        self._rounds.stop()
        if self._anchor is not None:
            self._anchor.close()

    def fault(self) -> str | None:
        """Why the database cannot be used, and what to do; None when it can be read and written."""
        missing = self._file_fault()
        if missing is not None:
            return missing
        try:
            now = time.monotonic()
            is_due = now - self._written_at >= _PROBE_PERIOD_SECONDS
            with self._database.session(_PROBE_PATIENCE_SECONDS) as session:
                current = is_current(session)
                if self._path is not None and is_due:
                    # A number in the file's header that nobody uses: the smallest thing that can be written.
                    session.execute(text("PRAGMA user_version = 0"))
                if self._path is None and session.scalar(text("SHOW transaction_read_only")) == "on":
                    return "the database takes no writes; end its read-only mode"
        except SQLAlchemyError as error:
            reason = " ".join(str(getattr(error, "orig", None) or type(error).__name__).split())
            return f"the database cannot be written: {reason}; see who holds it, and that its disk and server are well"
        if is_due:
            self._written_at = now
        return None if current else "the database is not of this version; a restart brings it up to date"

    def look(self) -> None:
        """Once: write the file again where it is missing. What cannot be mended is logged once."""
        with self._turn:
            fault = self._file_fault()
            if fault is not None and self._path is not None and not self._path.exists() and self._restore(self._path):
                _LOG.error("the database %s was deleted; it is there again, with all that it held", self._path)
                fault = None
            if fault is not None and fault != self._logged:
                _LOG.error("%s", fault)
            self._logged = fault or ""

    def _hold(self) -> None:
        """Keep the file open: what is in it can be read for as long as that lasts, whatever becomes of its name."""
        if self._path is None:
            return
        if self._anchor is not None:
            self._anchor.close()
        self._anchor = sqlite3.connect(self._path, check_same_thread=False)
        # It is opened by the first statement, with its write-ahead log.
        self._anchor.execute("SELECT count(*) FROM sqlite_master").fetchone()
        self._identity = _identity(self._path)

    def _file_fault(self) -> str | None:
        if self._path is None:
            return None
        present = _identity(self._path)
        if present is None:
            return f"the database file {self._path} is gone; {_REMEDY}"
        if present != self._identity:
            return f"the database file {self._path} was replaced by another; restart the service, so that it is used"
        return None

    def _restore(self, path: Path) -> bool:
        """The file as it was, under its name again. False when that cannot be done."""
        if self._anchor is None:
            return False
        copy = path.with_name(f".{path.name}.restored")
        try:
            copy.unlink(missing_ok=True)
            descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
            os.close(descriptor)
            with closing(sqlite3.connect(copy)) as target:
                self._anchor.backup(target)
            # Logs of the file that is gone must not be taken for those of this one.
            for suffix in ("-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            # Not over a file that somebody put there in the meantime.
            os.link(copy, path)
        except (OSError, sqlite3.Error) as error:
            _LOG.debug("the database cannot be written again", exc_info=error)
            return False
        finally:
            with suppress(OSError):
                copy.unlink(missing_ok=True)
        self._database.reopen()
        self._hold()
        return True


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
