"""The write-ahead log under a reader that does not end."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cliffwatch.store.database import Database, open_database, upgrade
from cliffwatch.store.log_growth import LogGrowth
from cliffwatch.store.monitor import DatabaseMonitor
from cliffwatch.store.sqlite_file import logs_of

READER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
print("held", flush=True)
sys.stdin.read()
"""
LIMIT_BYTES = 512 * 1024


@contextmanager
def reader(path: Path) -> Iterator[int]:
    """A process that reads the database as it is now, for as long as the block lasts; its process id."""
    command = [sys.executable, "-c", READER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "held\n"
        yield process.pid
        process.stdin.close()


def grow(database: Database) -> None:
    """Write twice the limit, and delete it."""
    with database.session() as session:
        session.connection().exec_driver_sql("CREATE TABLE IF NOT EXISTS filling (filler BLOB)")
        for _ in range(8):
            session.connection().exec_driver_sql("INSERT INTO filling VALUES (randomblob(131072))")
    with database.session() as session:
        session.connection().exec_driver_sql("DELETE FROM filling")


def test_a_log_is_cut_back_once_its_reader_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cliffwatch.store.database.LIMIT_BYTES", LIMIT_BYTES)
    path = tmp_path / "cliffwatch.db"
    upgrade(f"sqlite:///{path}")
    database = open_database(f"sqlite:///{path}")
    log = logs_of(path)[0]
    try:
        with reader(path):
            for _ in range(8):
                grow(database)
            held_bytes = log.stat().st_size
        grow(database)
        # It is begun anew at 1,000 pages of 4 KiB, and may be a transaction longer.
        assert log.stat().st_size < 6 * 1024**2 < held_bytes
    finally:
        database.close()


def test_a_log_that_a_reader_keeps_growing_is_said_with_who_has_it_open(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "cliffwatch.db"
    upgrade(f"sqlite:///{path}")
    database = open_database(f"sqlite:///{path}")
    monitor = DatabaseMonitor(database, LogGrowth(LIMIT_BYTES))
    log = logs_of(path)[0]

    monitor.start()
    try:
        with caplog.at_level(logging.WARNING), reader(path) as process_id:
            grow(database)
            for _ in range(3):
                monitor.look()
            assert log.stat().st_size > LIMIT_BYTES
            said = [record.getMessage() for record in caplog.records if "write-ahead log" in record.getMessage()]
            # Once, however often it is looked at.
            assert len(said) == 1
            assert str(log) in said[0]
            assert f"{process_id}; end the one that reads" in said[0]
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            grow(database)
            monitor.look()
            grow(database)
            monitor.look()
        assert not caplog.records, "nothing keeps it any more"
    finally:
        monitor.stop()
        database.close()
