"""The PostgreSQL server of a load: connections, the check before a run, and the schema of the load's tables."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from cliffwatch.engines.pgbench.load import PgbenchJob
from cliffwatch.engines.pgbench.program import TIMING
from cliffwatch.model.dsn import Dsn
from cliffwatch.model.target import DATABASE_SCHEMA

#: libpq waits no shorter than two seconds.
_CONNECT_SECONDS = 5
_STATEMENT_SECONDS = 5
_DROP_SECONDS = 30
#: The oldest server whose statistics of WAL are known.
OLDEST_VERSION = 140000
#: Settings that explain a result, as facts of the run.
SETTINGS = (
    "block_size",
    "checkpoint_completion_target",
    "checkpoint_timeout",
    "commit_delay",
    "data_checksums",
    "fsync",
    "full_page_writes",
    "max_connections",
    "max_wal_size",
    "shared_buffers",
    "synchronous_commit",
    "synchronous_standby_names",
    "wal_buffers",
    "wal_compression",
    "wal_level",
    "wal_sync_method",
)

Connection = psycopg.Connection[tuple[Any, ...]]


def libpq_environment(job: PgbenchJob) -> dict[str, str]:
    """Variables of libpq for pgbench and for connections of this process. Raises OSError where a file is not there."""
    dsn = Dsn.parse(job.dsn)
    variables = {
        "PGHOST": dsn.host,
        "PGPORT": str(dsn.port),
        "PGUSER": dsn.user,
        "PGDATABASE": dsn.database,
        "PGAPPNAME": job.application_name,
        "PGCONNECT_TIMEOUT": str(_CONNECT_SECONDS),
    }
    if job.load.password_file is not None:
        variables["PGPASSWORD"] = Path(job.load.password_file).read_text(encoding="utf-8").rstrip("\r\n")
    if job.load.ca_file is not None:
        variables |= {"PGSSLMODE": "verify-full", "PGSSLROOTCERT": job.load.ca_file}
    others = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return others | variables


def connect(job: PgbenchJob, name: str) -> Connection:
    """Connect as the load's user; each statement has a timeout. `name`: how the server lists the session.

    Raises psycopg.Error, or OSError where a file is not there.
    """
    given = libpq_environment(job)
    return psycopg.connect(
        host=given["PGHOST"],
        port=given["PGPORT"],
        user=given["PGUSER"],
        dbname=given["PGDATABASE"],
        password=given.get("PGPASSWORD"),
        sslmode=given.get("PGSSLMODE", "prefer"),
        sslrootcert=given.get("PGSSLROOTCERT"),
        connect_timeout=_CONNECT_SECONDS,
        application_name=name,
        autocommit=True,
        options=f"-c statement_timeout={_STATEMENT_SECONDS}s",
    )


@dataclass(slots=True)
class Check:
    """What a check found, as sentences: notes, why the server cannot be reached, and what would not work."""

    notes: list[str] = field(default_factory=list)
    unreachable: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def check(job: PgbenchJob) -> Check:
    """Whether the load could begin; changes nothing."""
    found = Check()
    try:
        with connect(job, f"{job.application_name} check"[:63]) as connection:
            _check_database(job, connection, found)
    except OSError as error:
        found.refused.append(f"{error.filename} cannot be read: {error.strerror}; put it there or correct its path")
    except psycopg.OperationalError as error:
        found.unreachable.append(f"{_words(error)}; start the server, or correct the database's address or its user")
    except psycopg.Error as error:
        found.refused.append(_words(error))
    return found


def _check_database(job: PgbenchJob, connection: Connection, found: Check) -> None:
    version = connection.info.server_version
    found.notes.append(f"PostgreSQL {_one(connection, 'SHOW server_version')}")
    if version < OLDEST_VERSION:
        found.refused.append("the server is older than PostgreSQL 14, which has no statistics of its WAL; upgrade it")
    if objection := _strangers(job, connection):
        found.refused.append(objection)
    if not _one(connection, "SELECT has_database_privilege(current_database(), 'CREATE')"):
        user = Dsn.parse(job.dsn).user
        found.refused.append(f"{user} may not create a schema in the database; make it the owner of the database")
    free = _free_connections(connection)
    # Two more: this process reads the server's statistics, and a check has a connection of its own.
    if free < job.load.clients + 2:
        found.refused.append(
            f"the server has {free} free connections for {job.load.clients} clients and two of the run; lower "
            "load.clients, or raise max_connections"
        )
    found.notes += warnings_of(job, connection)


def warnings_of(job: PgbenchJob, connection: Connection) -> list[str]:
    """Sentences on what the result cannot say with this server and this load."""
    warnings = []
    user, has_grants = Dsn.parse(job.dsn).user, connection.info.server_version >= 150000
    if not may_checkpoint(connection):
        remedy = f"GRANT pg_checkpoint TO {user}" if has_grants else "give it a warm-up"
        warnings.append(f"the load begins while the server still writes its tables: {remedy}")
    if not may_time_flushes(connection):
        remedy = f"GRANT SET ON PARAMETER {TIMING} TO {user}, or turn it on" if has_grants else f"turn {TIMING} on"
        warnings.append(f"how long a WAL flush takes is not measured: {remedy}")
    for name, words in (("fsync", "no write"), ("synchronous_commit", "no commit")):
        if _one(connection, "SELECT current_setting(%s)", name) == "off":
            warnings.append(f"{name} is off: {words} waits for the drive")
    if job.load.script == "tpcb-like" and job.load.scale < job.load.clients:
        warnings.append(
            f"{job.load.clients} clients update {job.load.scale} branches: transactions wait for each other's rows; "
            "make load.scale as large as load.clients"
        )
    return warnings


def _strangers(job: PgbenchJob, connection: Connection) -> str | None:
    """Why the database is not empty; None for one that has nothing, or only what this run made."""
    other = _one(
        connection,
        "SELECT string_agg(format('%%I.%%I', nspname, relname), ', ') FROM (SELECT nspname, relname FROM pg_class"
        " JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname NOT IN (%s, 'information_schema')"
        " AND nspname NOT LIKE 'pg\\_%%' ORDER BY 1, 2 LIMIT 3) AS found",
        DATABASE_SCHEMA,
    )
    if other is not None:
        return f"the database is not empty: it has {other}; name a database that was created for the run"
    owner = owner_of_schema(connection)
    if owner is not None and not job.owns(owner):
        which = owner or "which left no name"
        remedy = f"DROP SCHEMA {DATABASE_SCHEMA} CASCADE when that is over"
        return f"the database has the schema {DATABASE_SCHEMA} of another load ({which}); {remedy}"
    return None


def owner_of_schema(connection: Connection) -> str | None:
    """Comment on the schema of the load's tables, which names the run; None where there is no schema."""
    comment: str | None = _one(
        connection,
        "SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE nspname = %s",
        DATABASE_SCHEMA,
    )
    return comment


def make_schema(job: PgbenchJob, connection: Connection) -> bool:
    """Make the schema of the load's tables; returns whether its tables are complete already.

    Raises ValueError when the database is not the run's own.
    """
    if objection := _strangers(job, connection):
        raise ValueError(objection)
    owner = owner_of_schema(connection)
    if owner is None:
        with connection.transaction():
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(DATABASE_SCHEMA)))
            _comment(connection, job.owner)
    return owner == _complete(job)


def note_complete(job: PgbenchJob, connection: Connection) -> None:
    """Note on the schema that its tables are complete, so that a later worker does not make them again."""
    _comment(connection, _complete(job))


def drop_schema(job: PgbenchJob, connection: Connection) -> None:
    """End the load's sessions and drop its tables, if they are this run's. Raises psycopg.Error."""
    owner = owner_of_schema(connection)
    if owner is None or not job.owns(owner):
        return
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s AND pid <> pg_backend_pid()"
        " AND datname = current_database()",
        (job.application_name,),
    )
    connection.execute(f"SET statement_timeout = '{_DROP_SECONDS}s'")
    connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(DATABASE_SCHEMA)))


def may_time_flushes(connection: Connection) -> bool:
    """Whether the load's sessions have flushes of the WAL timed, or may turn that on."""
    if _one(connection, f"SHOW {TIMING}") == "on":
        return True
    try:
        with connection.transaction():
            connection.execute(f"SET LOCAL {TIMING} = on")
    except psycopg.errors.InsufficientPrivilege:
        return False
    return True


def may_checkpoint(connection: Connection) -> bool:
    """Whether the load's user may have a checkpoint made."""
    return bool(
        _one(
            connection,
            "SELECT rolsuper OR coalesce(pg_has_role(oid, to_regrole('pg_checkpoint'), 'USAGE'), false)"
            " FROM pg_roles WHERE rolname = current_user",
        )
    )


def write_back(connection: Connection) -> None:
    """Have a checkpoint made, which writes the new tables to the drive, where the user may. Raises psycopg.Error."""
    if may_checkpoint(connection):
        connection.execute("SET statement_timeout = 0")
        connection.execute("CHECKPOINT")


def settings_of(connection: Connection) -> dict[str, str]:
    """Settings of the server that explain a result; those that this user may not see are absent."""
    rows = connection.execute(
        "SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY(%s)", (list(SETTINGS),)
    ).fetchall()
    return {str(name): str(value) for name, value in sorted(rows)}


def _free_connections(connection: Connection) -> int:
    return int(
        _one(
            connection,
            "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"
            " - count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend'",
        )
    )


def _complete(job: PgbenchJob) -> str:
    return f"{job.owner}: scale {job.load.scale}"


def _comment(connection: Connection, text: str) -> None:
    statement = sql.SQL("COMMENT ON SCHEMA {} IS {}").format(sql.Identifier(DATABASE_SCHEMA), sql.Literal(text))
    connection.execute(statement)


def _one(connection: Connection, question: LiteralString, *parameters: object) -> Any:
    row = connection.execute(question, parameters or None).fetchone()
    return None if row is None else row[0]


def _words(error: psycopg.Error) -> str:
    return " ".join(str(error).split()) or type(error).__name__
