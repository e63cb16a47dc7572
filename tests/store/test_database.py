import gc
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError, OperationalError
from testkit.journals import synthetic_workload
from testkit.loops import command

from cliffwatch.base.errors import Problem
from cliffwatch.model.scope import Scope
from cliffwatch.store.database import Database, open_database, upgrade
from cliffwatch.store.models import FindingRow
from cliffwatch.store.monitor import DatabaseMonitor
from cliffwatch.store.sqlite_file import logs_of
from cliffwatch.store.tokens import create_token
from cliffwatch.store.workloads import find_workload, put_workload


def test_an_exception_rolls_everything_back(database: Database) -> None:
    def fail_halfway() -> None:
        with database.session() as session:
            put_workload(session, synthetic_workload(), 1.0)
            raise LookupError

    with pytest.raises(LookupError):
        fail_halfway()
    with database.snapshot() as session:
        assert find_workload(session, "steady") is None


def test_a_snapshot_does_not_wait_for_a_writer_and_sees_what_was_committed(database: Database) -> None:
    with database.session() as writing:
        put_workload(writing, synthetic_workload(), 1.0)
        with database.snapshot() as reading:
            assert find_workload(reading, "steady") is None
    with database.snapshot() as reading:
        assert find_workload(reading, "steady") is not None


def test_nothing_refers_to_a_run_that_does_not_exist(database: Database) -> None:
    with pytest.raises(IntegrityError), database.session() as session:
        session.add(FindingRow(run_id="absent", event_id=1, at=1.0, name="cliff", detail={}))


def test_writers_take_turns(database: Database) -> None:
    failures: list[BaseException] = []

    def submit(number: int) -> None:
        try:
            for turn in range(5):
                with database.session() as session:
                    put_workload(session, synthetic_workload(description=f"{number} {turn}"), 1.0)
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=submit, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with database.snapshot() as session:
        newest = find_workload(session, "steady")
        assert newest is not None
        assert newest.version == 20


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[tuple[Database, DatabaseMonitor]]:
    """A database in a file, and its monitor, which requires that file from then on."""
    upgrade(f"sqlite:///{tmp_path}/file.sqlite3")
    database = open_database(f"sqlite:///{tmp_path}/file.sqlite3")
    monitor = DatabaseMonitor(database)
    monitor.start()
    yield database, monitor
    monitor.stop()
    database.close()


def test_a_commit_to_a_database_file_that_was_moved_away_is_not_acknowledged(
    watched: tuple[Database, DatabaseMonitor], tmp_path: Path
) -> None:
    def lose_it_meanwhile() -> None:
        with watched[0].session() as session:
            put_workload(session, synthetic_workload(), 1.0)
            (tmp_path / "file.sqlite3").rename(tmp_path / "away")

    with pytest.raises(OperationalError, match="is gone"):
        lose_it_meanwhile()


def test_a_log_is_removed_from_beside_a_file_that_it_is_not_of(
    watched: tuple[Database, DatabaseMonitor], tmp_path: Path
) -> None:
    path, other = tmp_path / "file.sqlite3", tmp_path / "other"
    with watched[0].session() as session:
        put_workload(session, synthetic_workload(), 1.0)
    upgrade(f"sqlite:///{other}")
    path.rename(tmp_path / "away")
    other.rename(path)
    watched[1].look()
    assert not any(log.exists() for log in logs_of(path))


def test_sqlite_keeps_a_write_ahead_log_and_checks_references(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path}/new/file.sqlite3")
    with database.snapshot() as session:
        assert session.scalar(text("PRAGMA journal_mode")) == "wal"
        assert session.scalar(text("PRAGMA foreign_keys")) == 1
        assert session.scalar(text("PRAGMA synchronous")) == 2, "each commit is synced"
    database.close()


def test_a_snapshot_writes_nothing(database: Database) -> None:
    with database.snapshot() as session:
        create_token(session, "lost", Scope.READ, 1.0)
    with database.snapshot() as session:
        assert session.scalar(text("SELECT count(*) FROM tokens")) == 0


def test_a_file_that_could_not_be_written_when_it_was_opened_is_written_once_it_can_be(volume: Path) -> None:
    url = f"sqlite:///{volume / 'cliffwatch.sqlite3'}"
    upgrade(url)
    command("chattr", "+i", volume / "cliffwatch.sqlite3")
    database = open_database(url)
    try:
        with pytest.raises(OperationalError, match="readonly"), database.session() as session:
            put_workload(session, synthetic_workload(), 1.0)
        command("chattr", "-i", volume / "cliffwatch.sqlite3")
        with database.session() as session:
            put_workload(session, synthetic_workload(), 1.0)
    finally:
        database.close()
        # The exception has frames, these a cursor, and that keeps the file open.
        gc.collect()


def refusal(url: str) -> str:
    """What the upgrade of a database says that fails."""
    with pytest.raises(Problem) as refused:
        upgrade(url)
    detail = refused.value.detail
    # The exception has frames, these a cursor, and that keeps the file open.
    del refused
    gc.collect()
    return detail


def test_a_file_that_may_not_be_written_is_not_called_damaged(volume: Path) -> None:
    url = f"sqlite:///{volume / 'cliffwatch.sqlite3'}"
    upgrade(url, "0004")
    command("chattr", "+i", volume / "cliffwatch.sqlite3")
    said = refusal(url)
    command("chattr", "-i", volume / "cliffwatch.sqlite3")
    assert "mounted read-write" in said
    assert "move it away" not in said


def _overwrite(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.seek(8192)
        opened.write(b"\xff" * 32768)


def _execute(statement: str, file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_overwrite, "cannot be used"),
        (partial(_execute, "DROP TABLE runs"), "it has no table runs"),
        (partial(_execute, "INSERT INTO alembic_version VALUES ('0001')"), "cannot be used"),
    ],
    ids=["overwritten", "table dropped", "two revisions"],
)
def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path, damage: Callable[[Path], None], words: str) -> None:
    file = tmp_path / "cliffwatch.sqlite3"
    upgrade(f"sqlite:///{file}")
    damage(file)
    said = refusal(f"sqlite:///{file}")
    assert words in said
    assert str(file) in said
    assert "move it away: a start makes another of the journals" in said
