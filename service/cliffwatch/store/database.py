"""Opening the database, and bringing its tables up to date.

SQLite keeps a write-ahead log, so that readers never wait for the writer; PostgreSQL is reached through psycopg. A
database that is down stops requests from being answered, never a run: the journal is the truth.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry

#: How long a SQLite writer waits for another one before it gives up.
BUSY_TIMEOUT_MILLISECONDS = 10_000
MIGRATIONS = Path(__file__).resolve().parents[3] / "migrations"
_READ_ONLY = "cliffwatch_read_only"


class Database:
    """An engine and the two ways to use it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @contextmanager
    def session(self) -> Iterator[Session]:
        """A transaction that may write: committed at the end, rolled back by an exception.

        SQLite lets one such transaction in at a time, so what was read in it still holds when it writes; keep it short.
        """
        with Session(self.engine, expire_on_commit=False) as session, session.begin():
            yield session

    @contextmanager
    def snapshot(self) -> Iterator[Session]:
        """A transaction that only reads. Writers do not wait for it, nor it for them."""
        with self.engine.connect().execution_options(**{_READ_ONLY: True}) as connection:
            with Session(connection, expire_on_commit=False, autoflush=False) as session:
                yield session
            connection.rollback()

    def close(self) -> None:
        self.engine.dispose()


def open_database(url: str) -> Database:
    """The database behind a URL: sqlite:////absolute/file or postgresql+psycopg://user@host/name."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return Database(create_engine(parsed, pool_pre_ping=True, pool_size=10, max_overflow=30))
    if parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(parsed, pool_size=10, max_overflow=30)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return Database(engine)


def take_turns(session: Session, subject: str) -> None:
    """Until this transaction ends, no other one gets past here with the same subject.

    SQLite's writers take turns anyway.
    """
    if session.connection().dialect.name == "postgresql":
        session.execute(text("SELECT pg_advisory_xact_lock(hashtext(:subject))"), {"subject": subject})


def upgrade(url: str, revision: str = "head") -> None:
    """Bring the tables to a revision, the newest unless told otherwise."""
    database = open_database(url)
    try:
        with database.engine.connect() as connection:
            command.upgrade(_configuration(connection), revision)
    finally:
        database.close()


def downgrade(url: str, revision: str) -> None:
    """Take the tables back to an earlier revision, or to `base`, which has none."""
    database = open_database(url)
    try:
        with database.engine.connect() as connection:
            command.downgrade(_configuration(connection), revision)
    finally:
        database.close()


def is_current(session: Session) -> bool:
    """Whether the tables are at the newest revision."""
    return MigrationContext.configure(session.connection()).get_current_revision() == _newest_revision()


@cache
def _newest_revision() -> str | None:
    return ScriptDirectory(str(MIGRATIONS)).get_current_head()


def _configuration(connection: Connection) -> Config:
    configuration = Config()
    configuration.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    configuration.attributes["connection"] = connection
    return configuration


def _prepare_sqlite(connection: sqlite3.Connection, record: ConnectionPoolEntry) -> None:
    # The driver's own idea of when to begin would let a read and the write that follows from it fall apart.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MILLISECONDS}")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_sqlite(connection: Connection) -> None:
    read_only = connection.get_execution_options().get(_READ_ONLY, False)
    connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")
