"""Checks of a real server before a load, and one short load."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testkit.postgres import PostgresqlServer, running_server
from testkit.worker_runs import events, execute_run, queue_run
from tests.engines.pgbench.databases import connected_as_owner, empty_database

from cliffwatch.base.errors import Problem
from cliffwatch.engines.contract import EngineContext, Probe
from cliffwatch.engines.pgbench.engine import PgbenchEngine
from cliffwatch.engines.pgbench.load import PgbenchJob, PgbenchLoad
from cliffwatch.engines.pgbench.server import drop_schema
from cliffwatch.journal import JournalReader, files
from cliffwatch.model.target import PostgresTarget


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresqlServer]:
    with running_server() as server:
        yield server


def check(target: PostgresTarget, directory: Path, **load: Any) -> Probe:
    now = time.time()
    context = EngineContext(
        run_id="checked",
        path=directory,
        is_device=False,
        scratch=directory,
        window_seconds=1.0,
        start=now,
        stop=now + 10,
        state_directory=directory,
        dsn=target.dsn,
    )
    return PgbenchEngine().probe(PgbenchLoad.model_validate({"scale": 10} | load), context)


def test_an_empty_database_can_be_loaded_and_the_check_says_what_will_not_be_measured(
    server: PostgresqlServer, tmp_path: Path
) -> None:
    found = check(empty_database(server), tmp_path)
    assert (found.unreachable, found.refused) == ((), ())
    assert any(note.startswith("PostgreSQL 1") for note in found.notes)
    assert any("GRANT pg_checkpoint TO soak_" in note for note in found.notes)
    assert any("GRANT SET ON PARAMETER track_wal_io_timing TO soak_" in note for note in found.notes)
    assert "fsync is off: no write waits for the drive" in found.notes


def test_clients_that_outnumber_the_branches_are_noted(server: PostgresqlServer, tmp_path: Path) -> None:
    target = empty_database(server)
    assert any("wait for each other's rows" in note for note in check(target, tmp_path, scale=1, clients=4).notes)
    alone = check(target, tmp_path, scale=1, clients=4, script="select-only")
    assert not any("wait for each other's rows" in note for note in alone.notes)


def test_a_database_with_anything_else_in_it_is_refused(server: PostgresqlServer, tmp_path: Path) -> None:
    target = empty_database(server)
    with connected_as_owner(target) as connection:
        connection.execute("CREATE SCHEMA shop CREATE TABLE orders (id int)")
    (refused,) = check(target, tmp_path).refused
    assert "it has shop.orders" in refused


def test_the_tables_of_another_load_are_refused_with_what_removes_them(
    server: PostgresqlServer, tmp_path: Path
) -> None:
    target = empty_database(server)
    with connected_as_owner(target) as connection:
        connection.execute("CREATE SCHEMA cliffwatch")
        connection.execute("COMMENT ON SCHEMA cliffwatch IS 'cliffwatch monday: scale 10'")
    (refused,) = check(target, tmp_path).refused
    assert "another load (cliffwatch monday: scale 10)" in refused
    assert "DROP SCHEMA cliffwatch CASCADE" in refused


def test_the_tables_of_another_load_are_not_dropped(server: PostgresqlServer, tmp_path: Path) -> None:
    target = empty_database(server)
    with connected_as_owner(target) as connection:
        connection.execute("CREATE SCHEMA cliffwatch CREATE TABLE kept (id int)")
        connection.execute("COMMENT ON SCHEMA cliffwatch IS 'cliffwatch monday: scale 10'")
        for run_id, remains in (("tuesday", 1), ("mon", 1), ("monday", 0)):
            job = PgbenchJob(
                run_id=run_id,
                dsn=target.dsn,
                load=PgbenchLoad(),
                start=0.0,
                stop=1.0,
                window_seconds=1.0,
                may_move=True,
                scratch=str(tmp_path),
            )
            drop_schema(job, connection)
            found = connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'cliffwatch'").fetchone()
            assert found == (remains,), run_id


def test_more_clients_than_the_server_has_connections_are_refused(server: PostgresqlServer, tmp_path: Path) -> None:
    (refused,) = check(empty_database(server), tmp_path, clients=99).refused
    assert "lower load.clients, or raise max_connections" in refused


def test_a_user_who_may_make_no_schema_is_refused(server: PostgresqlServer, tmp_path: Path) -> None:
    target, other = empty_database(server), empty_database(server)
    stranger = PostgresTarget(dsn=target.dsn.replace(target.database.user, other.database.user, 1))
    (refused,) = check(stranger, tmp_path).refused
    assert f"{other.database.user} may not create a schema" in refused


@pytest.mark.parametrize(
    ("user", "database", "words"), [("stranger", "postgres", "role"), ("postgres", "absent", "does not exist")]
)
def test_a_server_that_refuses_the_connection_is_named_with_its_reason(
    server: PostgresqlServer, tmp_path: Path, user: str, database: str, words: str
) -> None:
    target = PostgresTarget(dsn=f"postgresql://{user}@127.0.0.1:{server.port}/{database}")
    (unreachable,) = check(target, tmp_path).unreachable
    assert words in unreachable
    assert "correct the database's address or its user" in unreachable


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    (unreachable,) = check(PostgresTarget(dsn="postgresql://soak@127.0.0.1:1/bench"), tmp_path).unreachable
    assert "127.0.0.1" in unreachable
    assert "start the server" in unreachable


def test_a_password_is_read_from_the_place_of_secrets_only(server: PostgresqlServer, tmp_path: Path) -> None:
    target = empty_database(server)
    elsewhere = tmp_path / "password"
    elsewhere.write_text("secret\n")
    with pytest.raises(Problem) as refused:
        check(target, tmp_path, password_file=str(elsewhere))
    (fault,) = refused.value.faults
    assert fault.field == "load.password_file"
    assert str(tmp_path / "secrets") in fault.message
    (tmp_path / "secrets").mkdir()
    elsewhere.rename(tmp_path / "secrets" / "password")
    assert check(target, tmp_path, password_file=str(tmp_path / "secrets" / "password")).unreachable == ()
    (missing,) = check(target, tmp_path, password_file=str(tmp_path / "secrets" / "other")).refused
    assert "secrets/other cannot be read" in missing


def test_a_load_has_windows_and_facts_and_leaves_the_database_empty(server: PostgresqlServer, tmp_path: Path) -> None:
    target = empty_database(server)
    directory = queue_run(
        tmp_path / "short",
        target=target,
        engine="pgbench",
        window="500ms",
        phases={"soak": "3s"},
        load={"scale": 2, "clients": 2, "rate": 100},
    )
    execute_run(directory)
    windows = list(JournalReader(directory).windows())
    assert sum(window.counters["operations"] for window in windows) == pytest.approx(300, abs=90)
    assert all(set(window.latency) == {"transaction", "transaction_service"} for window in windows)
    assert all(window.counters["database_samples"] >= 1 for window in windows)
    assert sum(window.counters["database_wal_bytes"] for window in windows) > 0
    samples = sum(window.counters["database_samples"] for window in windows)
    busy = sum(count for window in windows for name, count in window.counters.items() if name.endswith("_sessions"))
    assert busy < 0.7 * samples, "of two sessions, each is in a transaction for a tenth of the time, and else idle"
    facts = json.loads((directory / files.FACTS).read_text())
    assert facts["engine"]["fsync"] == "off"
    assert facts["engine"]["flushes_timed"] == "no"
    assert facts["versions"]["postgresql"].startswith("1")
    assert "fsync is off: no write waits for the drive" in facts["warnings"]
    with connected_as_owner(target) as connection:
        rows = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname = 'cliffwatch'").fetchall()
    assert rows == []
    assert not [event for event in events(directory) if event.name == "files_left_behind"]
