"""Open the database, and bring its tables up to date.

SQLite keeps a write-ahead log, so that readers never wait for the writer; PostgreSQL is reached through psycopg. While
a database is down, requests cannot be answered, but runs go on: the journals are authoritative.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, create_engine, event, inspect, literal, select, text
from sqlalchemy.engine import ExceptionContext, make_url
from sqlalchemy.exc import DatabaseError, InterfaceError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.resources import MIGRATIONS_DIRECTORY
from cliffwatch.base.version import VERSION
from cliffwatch.store.log_growth import LIMIT_BYTES
from cliffwatch.store.models import BaseRow
from cliffwatch.store.postgresql import CONNECT_SECONDS, open_postgresql
from cliffwatch.store.sqlite_file import SqliteFile

#: How long a writer waits for another one before the client gets the error that the database is busy.
PATIENCE_SECONDS = 3.0
_READ_ONLY = "cliffwatch_read_only"
_PATIENCE = "cliffwatch_patience_seconds"
#: Exceptions of a database that is locked, unreachable, damaged or not writable.
DATABASE_ERRORS = (DatabaseError, InterfaceError, PoolTimeoutError)
#: Messages of SQLite and PostgreSQL on a part of the database that is missing or damaged.
_DAMAGE = re.compile(r"malformed|not a database|no such (?:table|column)|UndefinedTable|relation .* does not exist")


class Database:
    """A database engine with its read and write transactions; `file` is None unless it is a plain SQLite file."""

    def __init__(self, engine: Engine, file: SqliteFile | None = None) -> None:
        self.engine = engine
        self.file = file

    @contextmanager
    def session(self, patience_seconds: float = PATIENCE_SECONDS) -> Iterator[Session]:
        """A transaction that may write: committed at the end, rolled back by an exception.

        SQLite allows one such transaction at a time, so data read in it is still current when it writes; keep it short.
        Raises one of DATABASE_ERRORS when it cannot begin within `patience_seconds`, and when the file was deleted or
        replaced: what is written there would be lost with the file.
        """
        engine = self.engine.execution_options(**{_PATIENCE: patience_seconds})
        self._require_file()
        with Session(engine, expire_on_commit=False) as session, session.begin():
            yield session
        self._require_file()

    @contextmanager
    def snapshot(self) -> Iterator[Session]:
        """A transaction that only reads. Writers do not wait for it, and it does not wait for writers."""
        with self.engine.connect().execution_options(**{_READ_ONLY: True}) as connection:
            with Session(connection, expire_on_commit=False, autoflush=False) as session:
                yield session
            connection.rollback()

    def close(self) -> None:
        self.engine.dispose()

    def _require_file(self) -> None:
        if self.file is not None:
            self.file.require_well()


def open_database(url: str, *, limits_answers: bool = True) -> Database:
    """Open the database of a URL: sqlite:////absolute/file or postgresql+psycopg://user@host/name.

    With `limits_answers`, a PostgreSQL server that takes `postgresql.ANSWER_SECONDS` for a statement counts as
    unreachable.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return Database(open_postgresql(parsed, PATIENCE_SECONDS, limits_answers=limits_answers))
    if parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(parsed, pool_size=10, max_overflow=30, pool_timeout=CONNECT_SECONDS)
    file = None
    if parsed.database and parsed.database != ":memory:" and not parsed.query:
        file = SqliteFile(Path(parsed.database))
        event.listen(engine, "do_connect", file.connect)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    event.listen(engine, "handle_error", _forget_read_only)
    return Database(engine, file)


def take_turns(session: Session, subject: str) -> None:
    """Lock `subject`, such as `workload quick-soak`, until this transaction ends: others with the same subject wait.

    Needed on PostgreSQL only: SQLite's writers exclude each other anyway.
    """
    if session.connection().dialect.name == "postgresql":
        session.execute(text("SELECT pg_advisory_xact_lock(hashtext(:subject))"), {"subject": subject})


def upgrade(url: str, revision: str = "head") -> None:
    """Migrate the tables to a revision, the newest by default.

    Raises Problem: database_newer for tables that a newer version made, database_unavailable for a database that is
    damaged, or whose text is not encoded in UTF-8.
    """
    # No limit, since a change of a large table may take long.
    database = open_database(url, limits_answers=False)
    try:
        with database.engine.connect() as connection:
            _require_utf8(connection)
            _require_known(connection)
            command.upgrade(_configuration(connection), revision)
            _require_whole(connection, url)
    except DatabaseError as error:
        raise _unusable(url, error) from error
    except CommandError as error:
        # Two revisions, or an invalid one: alembic_version was changed by hand.
        raise _damaged(url, str(error)) from error
    finally:
        database.close()


def downgrade(url: str, revision: str) -> None:
    """Migrate the tables back to an earlier revision, or to `base`, which has no tables."""
    database = open_database(url, limits_answers=False)
    try:
        with database.engine.connect() as connection:
            command.downgrade(_configuration(connection), revision)
    finally:
        database.close()


def is_current(session: Session) -> bool:
    """Whether the tables are at the newest revision."""
    return _current_revision(session.connection()) == _newest_revision()


def read_each_table(session: Session) -> None:
    """Read the beginning of each table. Raises one of DATABASE_ERRORS where one is missing or damaged."""
    for table in BaseRow.metadata.tables.values():
        session.execute(select(literal(1)).select_from(table).limit(1))


def why_unusable(error: Exception) -> str:
    """The database's own message in an exception, on one line."""
    return " ".join(str(getattr(error, "orig", None) or type(error).__name__).split())


def is_damage(error: Exception) -> bool:
    """Whether an exception of the database means damage, which does not go away by itself."""
    return _DAMAGE.search(f"{type(getattr(error, 'orig', None)).__name__}: {why_unusable(error)}") is not None


def _unusable(url: str, error: DatabaseError) -> Problem:
    """Problem for an unusable database: it is damaged, no database, read-only, or locked by another program."""
    reason = why_unusable(error)
    if str(getattr(error.orig, "sqlite_errorname", "")).startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        name = make_url(url).render_as_string(hide_password=True)
        remedy = "another program holds it; wait for it, or end it"
        return Problem(Code.DATABASE_UNAVAILABLE, f"the database {name} cannot be used: {reason:.200}; {remedy}")
    if str(getattr(error.orig, "sqlite_errorname", "")).startswith("SQLITE_READONLY"):
        name = make_url(url).render_as_string(hide_password=True)
        remedy = "let the service's user write the file and its directory, on a file system that is mounted read-write"
        return Problem(Code.DATABASE_UNAVAILABLE, f"the database {name} cannot be used: {reason:.200}; {remedy}")
    return _damaged(url, reason)


def _damaged(url: str, reason: str) -> Problem:
    name = make_url(url).render_as_string(hide_password=True)
    remedy = (
        "see that it is whole and that no other program holds it, or move it away: a start makes another of the "
        "journals, without schedules and tokens"
    )
    return Problem(Code.DATABASE_UNAVAILABLE, f"the database {name} cannot be used: {reason:.200}; {remedy}")


def _require_whole(connection: Connection, url: str) -> None:
    """Check the database for damage at the start, before a request meets a damaged page or table. Raises Problem."""
    if connection.dialect.name == "sqlite":
        found = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar())
        if found != "ok":
            raise _damaged(url, " ".join(found.split()))
    if _current_revision(connection) == _newest_revision():
        missing = sorted(set(BaseRow.metadata.tables) - set(inspect(connection).get_table_names()))
        if missing:
            raise _damaged(url, f"it has no table {', '.join(missing)}")
    connection.rollback()


def _current_revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _require_utf8(connection: Connection) -> None:
    """Refuse a database that is not in UTF-8: SQLite's always are, PostgreSQL's encoding is set at its creation."""
    if connection.dialect.name != "postgresql":
        return
    encoding = connection.scalar(text("SHOW server_encoding"))
    connection.rollback()
    if encoding != "UTF8":
        name = connection.engine.url.render_as_string(hide_password=True)
        raise Problem(
            Code.DATABASE_UNAVAILABLE,
            f"the database {name} keeps its text as {encoding}, and not every name fits into that; make another with "
            "`createdb --encoding UTF8 --template template0 NAME`, and name it in CLIFFWATCH_DATABASE_URL",
        )


def _require_known(connection: Connection) -> None:
    present = _current_revision(connection)
    connection.rollback()
    known = {script.revision for script in ScriptDirectory(str(MIGRATIONS_DIRECTORY)).walk_revisions()}
    if present is not None and present not in known:
        raise Problem(
            Code.DATABASE_NEWER,
            f"the database is at schema {present}, and Cliffwatch {VERSION} knows schemas up to "
            f"{_newest_revision()}; start the newer Cliffwatch that made it, or give this one another database with "
            "CLIFFWATCH_DATABASE_URL",
        )


@cache
def _newest_revision() -> str | None:
    return ScriptDirectory(str(MIGRATIONS_DIRECTORY)).get_current_head()


def _configuration(connection: Connection) -> Config:
    configuration = Config()
    configuration.set_main_option("script_location", str(MIGRATIONS_DIRECTORY).replace("%", "%%"))
    configuration.attributes["connection"] = connection
    return configuration


def _prepare_sqlite(connection: sqlite3.Connection, record: ConnectionPoolEntry) -> None:
    # Replace bytes that are not UTF-8, which only damage explains, so that the other rows can still be read.
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    # `_begin_sqlite` begins transactions: the driver would begin one only before a write, without the read that it
    # depends on.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    # A log that has grown while it was in use is shortened to this when it is begun anew.
    connection.execute(f"PRAGMA journal_size_limit = {LIMIT_BYTES}")
    # Sync the log at each commit: otherwise a power cut could undo what was answered.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


def _forget_read_only(context: ExceptionContext) -> None:
    """Reopen a connection that was opened while the file was read-only: it stays read-only otherwise."""
    if "readonly database" in str(context.original_exception):
        context.is_disconnect = True


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    read_only = options.get(_READ_ONLY, False)
    patience_seconds = options.get(_PATIENCE, PATIENCE_SECONDS)
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {round(patience_seconds * 1000)}")
    connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")
