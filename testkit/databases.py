"""Databases for tests: `database_url` and `database` stand once for SQLite and once for a real PostgreSQL.

tests/conftest.py imports these fixtures, once for all tests, so that there is one PostgreSQL.
"""

from collections.abc import Iterator

import pytest
from testkit.postgres import PostgresqlServer, postgresql_server

from cliffwatch.store.database import Database, open_database, upgrade

__all__ = ["database", "database_url", "postgresql_server"]


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of an empty database, once of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('state') / 'cliffwatch.sqlite3'}"
    server: PostgresqlServer = request.getfixturevalue("postgresql_server")
    return server.new_database_url()


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A database with the newest tables."""
    upgrade(database_url)
    database = open_database(database_url)
    yield database
    database.close()
