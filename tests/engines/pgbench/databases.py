"""Empty databases of a PostgreSQL server for tests of loads, each with an owner who is no superuser."""

import uuid
from typing import Any

import psycopg
from testkit.postgres import PostgresqlServer

from cliffwatch.model.target import PostgresTarget


def empty_database(server: PostgresqlServer) -> PostgresTarget:
    """A new database, as a target, whose owner may do nothing else on the server."""
    name = f"soak_{uuid.uuid4().hex[:12]}"
    with server.connected() as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN".encode())
        connection.execute(f"CREATE DATABASE {name} OWNER {name}".encode())
    return PostgresTarget(dsn=f"postgresql://{name}@127.0.0.1:{server.port}/{name}")


def connected_as_owner(target: PostgresTarget) -> "psycopg.Connection[tuple[Any, ...]]":
    """A connection as the user that the target names; each statement commits."""
    return psycopg.connect(target.dsn, autocommit=True)
