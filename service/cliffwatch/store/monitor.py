"""The database of a running service: whether it can be used, and its file, should somebody delete it.

SQLite goes on in files that have no names any more, and everything is gone with the process. So the service looks every
few seconds whether its file and that file's write-ahead log are still there, and writes them again from what it holds
open. Until that is done, or where another file took its place, nobody is let write: it would be gone with what is open.
PostgreSQL looks after itself.
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
from cliffwatch.store.database import Database, is_current, is_damage, read_each_table, why_unusable
from cliffwatch.store.log_growth import LogGrowth
from cliffwatch.store.sqlite_file import Identity, LogIdentities, identity_of, log_identities_of, logs_of, uri_of

_LOG = logging.getLogger(__name__)
PERIOD_SECONDS = 2.0
#: How long `fault` waits for a writer: longer than one takes, shorter than whoever asks would wait.
_PROBE_PATIENCE_SECONDS = 1.0
#: A lock is had on a full disk, too, and so what is asked is written now and then, and not each time.
_PROBE_PERIOD_SECONDS = 2.0
#: Longer than any writer takes.
_LOCK_PATIENCE_SECONDS = 5.0
_REMEDY = "put the file back or restart the service, which makes a new one and reads the journals into it"


class DatabaseMonitor:
    """Watches over the service's database, in a thread."""

    def __init__(self, database: Database, log_growth: LogGrowth | None = None) -> None:
        self._database = database
        self._path = database.path
        self._log_growth = log_growth or LogGrowth()
        self._turn = threading.Lock()
        self._rounds = Rounds("database", PERIOD_SECONDS, self.look, "the database could not be checked")
        #: The file as it is held open: one that reads it, and one that can keep writers out meanwhile.
        self._held: tuple[sqlite3.Connection, sqlite3.Connection] | None = None
        self._identity: Identity | None = None
        self._log_identities: LogIdentities | None = None
        #: Whether the second of the two keeps writers out.
        self._is_closed = False
        #: Of files that lost their names: each keeps the one lock that writers need, so that nobody is answered that
        #: something was written there.
        self._locked: list[sqlite3.Connection] = []
        self._logged = ""
        self._written_at = float("-inf")

    def start(self) -> None:
        self._hold()
        self._rounds.start()

    def stop(self) -> None:
        self._rounds.stop()
        for connection in (*self._locked, *(self._held or ())):
            connection.close()

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
                if current and is_due:
                    read_each_table(session)
                if self._path is not None and is_due:
                    # A number in the file's header that nobody uses: the smallest thing that can be written.
                    session.execute(text("PRAGMA user_version = 0"))
                if self._path is None and session.scalar(text("SHOW transaction_read_only")) == "on":
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
        """Once: write the file again where it is missing. What cannot be mended is logged once."""
        with self._turn:
            fault = self._file_fault()
            if self._path is not None:
                fault = self._mended(self._path, fault)
            if fault is not None and fault != self._logged:
                _LOG.error("%s", fault)
            self._logged = fault or ""

    def _mended(self, path: Path, fault: str | None) -> str | None:
        """What is still the matter with the file."""
        if fault is None:
            self._open_again()
            if self._held is None:
                self._hold()
            if self._held is not None:
                self._log_growth.look(path, self._held[0])
            return None
        if (held := self._close()) is None:
            return fault
        present = identity_of(path)
        if present not in (None, self._identity):
            self._take_log_away(path, held[0])
        elif self._may_restore(path, present) and self._restore(path, present, held):
            lost = "the write-ahead log of the database" if present else "the database"
            _LOG.error("%s %s was deleted; it is there again, with all that it held", lost, path)
            return None
        return fault

    def _hold(self) -> None:
        """Keep the file open: what is in it can be read for as long as that lasts, whatever becomes of its name.

        Raises sqlite3.Error.
        """
        if self._path is None:
            return
        before = identity_of(self._path)
        held = (_opened(self._path), _opened(self._path))
        if before is None or identity_of(self._path) != before:
            # Nobody can say which of the two was opened.
            for connection in held:
                connection.close()
            return
        self._held, self._identity, self._log_identities = held, before, log_identities_of(self._path)
        self._database.require_file(before, self._log_identities)

    def _file_fault(self) -> str | None:
        if self._path is None:
            return None
        present = identity_of(self._path)
        if present is None:
            return f"the database file {self._path} is gone; {_REMEDY}"
        if present != self._identity:
            return f"the database file {self._path} was replaced by another; restart the service, so that it is used"
        if self._log_identities not in (None, log_identities_of(self._path)):
            return f"the write-ahead log of the database {self._path}, or its index, is gone; restart the service"
        return None

    def _close(self) -> tuple[sqlite3.Connection, sqlite3.Connection] | None:
        """What is held open, with no writer in it and none let in; None where that cannot be had."""
        if self._held is None or self._is_closed:
            return self._held
        try:
            self._held[1].execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            _LOG.debug("the database cannot be locked", exc_info=error)
            return None
        self._is_closed = True
        return self._held

    def _open_again(self) -> None:
        """Let writers in, since all is as it was."""
        if self._held is not None and self._is_closed:
            self._held[1].execute("ROLLBACK")
            self._is_closed = False

    def _take_log_away(self, path: Path, reader: sqlite3.Connection) -> None:
        """Whoever opens the file that has the name now would take this log for its own, and damage it.

        What it holds goes where it belongs, wherever that file is by now.
        """
        if log_identities_of(path) == self._log_identities:
            reader.execute("PRAGMA wal_checkpoint(PASSIVE)")
            for log in logs_of(path):
                log.unlink(missing_ok=True)

    def _may_restore(self, path: Path, present: Identity | None) -> bool:
        """A write-ahead log, or an index of it, that another program has made in the place of ours holds what ours does
        not."""
        ours = self._log_identities or (None, None)
        return present is None or all(
            found in (None, known) for found, known in zip(log_identities_of(path), ours, strict=True)
        )

    def _restore(
        self, path: Path, present: Identity | None, held: tuple[sqlite3.Connection, sqlite3.Connection]
    ) -> bool:
        """The file as it was, under its name again, or over the one `present`. False when that cannot be done."""
        reader, lock = held
        copy = path.with_name(f".{path.name}.restored")
        try:
            copy.unlink(missing_ok=True)
            descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
            os.close(descriptor)
            with closing(sqlite3.connect(copy)) as target:
                reader.backup(target)
                if target.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                    raise sqlite3.DatabaseError("what is held open is not whole")
            if not self._may_restore(path, present):
                raise sqlite3.OperationalError("there is another write-ahead log by now")
            # Logs of the file that is gone must not be taken for those of this one.
            for log in logs_of(path):
                log.unlink(missing_ok=True)
            self._database.require_file(identity_of(copy))
            if present is not None and identity_of(path) == present:
                copy.replace(path)
            else:
                # Not over a file that somebody put there in the meantime.
                os.link(copy, path)
        except (OSError, sqlite3.Error) as error:
            _LOG.debug("the database cannot be written again", exc_info=error)
            self._database.require_file(self._identity, self._log_identities)
            return False
        finally:
            with suppress(OSError):
                copy.unlink(missing_ok=True)
        reader.close()
        self._locked.append(lock)
        self._held, self._is_closed = None, False
        self._identity, self._log_identities = identity_of(path), None
        self._database.reopen()
        try:
            self._hold()
        except sqlite3.Error as error:
            _LOG.debug("the file that was written again cannot be held open yet", exc_info=error)
        return True


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri_of(path, "rw"), uri=True, timeout=_LOCK_PATIENCE_SECONDS, isolation_level=None, check_same_thread=False
    )
    # The file is opened by the first statement, with its write-ahead log.
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return connection
