"""Database fixtures: a test that uses `database_url` or `database` runs once on SQLite and once on a real PostgreSQL.

tests/conftest.py imports these fixtures, once for all tests, so that there is one PostgreSQL server.
"""

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url
from testkit.postgres import PostgresqlServer, postgresql_server

from cliffwatch.app.index import index_run
from cliffwatch.store.database import Database, open_database, upgrade

__all__ = ["database", "database_url", "indexed", "make_tables", "postgresql_server"]


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of an empty database; the test runs once for each kind of database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('state') / 'cliffwatch.sqlite3'}"
    server: PostgresqlServer = request.getfixturevalue("postgresql_server")
    return server.new_database_url()


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """An open database that is at the newest schema revision."""
    make_tables(database_url)
    database = open_database(database_url)
    yield database
    database.close()


def make_tables(url: str) -> None:
    """Upgrade the database to the newest revision; a new SQLite file is a copy of an upgraded one, which is faster."""
    parsed = make_url(url)
    path = Path(parsed.database or "")
    if parsed.get_backend_name() != "sqlite" or path.exists():
        upgrade(url)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_newest_sqlite())


def indexed(*directories: Path) -> Database:
    """An open database beside the first of these journals, which has them all in its index."""
    url = f"sqlite:///{directories[0].parent / 'index.db'}"
    make_tables(url)
    database = open_database(url)
    with database.session() as session:
        for directory in directories:
            index_run(session, directory)
    return database


@cache
def _newest_sqlite() -> bytes:
    """Content of the file of an empty SQLite database at the newest revision."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "database"
        upgrade(f"sqlite:///{path}")
        return path.read_bytes()
