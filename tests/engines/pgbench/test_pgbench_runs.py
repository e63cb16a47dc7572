"""Loads of a real server that freezes, restarts, or whose processes are killed."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from testkit.postgres import PostgresqlServer, running_server
from testkit.waiting import wait_until
from testkit.worker_runs import events, queue_run, start_worker, status
from tests.engines.pgbench.databases import connected_as_owner, empty_database

from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.journal import EventLog, JournalReader, JournalWindow
from cliffwatch.journal.state import change_state
from cliffwatch.model.run_state import RunState
from cliffwatch.model.target import PostgresTarget

RATE = 100
LOAD: dict[str, Any] = {"scale": 2, "clients": 2, "rate": RATE}


@pytest.fixture
def server() -> Iterator[PostgresqlServer]:
    with running_server() as server:
        yield server


def queue(directory: Path, target: PostgresTarget, soak: str, **load: Any) -> Path:
    return queue_run(directory, target=target, engine="pgbench", window="1s", phases={"soak": soak}, load=LOAD | load)


def windows_of(directory: Path) -> list[JournalWindow]:
    return list(JournalReader(directory).windows())


def wait_for_windows(directory: Path, count: int) -> None:
    wait_until(lambda: len(windows_of(directory)) >= count, f"{count} windows")


def finish(directory: Path, worker: "subprocess.Popen[bytes]") -> str | None:
    """Wait for the run's end; returns its verdict."""
    assert worker.wait(90) == 0
    assert status(directory).state is RunState.FINISHED
    (end,) = [event for event in events(directory) if event.name == "finished"]
    return str(end.detail["verdict"])


def assert_empty(server: PostgresqlServer, target: PostgresTarget) -> None:
    with connected_as_owner(target) as connection:
        rows = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname = 'cliffwatch'").fetchall()
    assert rows == []
    assert server.ask("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'cliffwatch%'") == 0


def names(directory: Path) -> list[str]:
    return [event.name for event in events(directory)]


def test_a_server_that_freezes_is_in_the_latencies_from_when_transactions_were_due(
    server: PostgresqlServer, tmp_path: Path
) -> None:
    target = empty_database(server)
    directory = queue(tmp_path / "frozen", target, "16s")
    worker = start_worker(directory)
    wait_for_windows(directory, 5)
    with server.frozen():
        frozen_at = time.time()
        time.sleep(3.0)
    finish(directory, worker)
    windows = windows_of(directory)
    assert all(after.start == before.end for before, after in pairwise(windows)), "no window is missing"
    assert len(windows) == 16
    # Every transaction that was due is there, whenever it was done.
    assert sum(window.counters["operations"] for window in windows) == pytest.approx(16 * RATE, rel=0.1)
    silent = [window for window in windows if window.counters["operations"] == 0]
    assert len(silent) >= 2
    assert all(frozen_at - 1 <= window.start <= frozen_at + 3 for window in silent)
    assert max(window.gauges["oldest_outstanding_seconds"] for window in silent) >= 1.5
    after = windows[windows.index(silent[-1]) + 1]
    assert after.latency["transaction"]["max"] == pytest.approx(3.0, abs=0.5)
    assert (after.latency["transaction"]["p50"] or 0) >= 0.5, (
        "what was due meanwhile is late, not only what was under way"
    )
    assert (after.latency["transaction_service"]["p50"] or 9) < 0.1, "most were short once they began"
    assert_empty(server, target)


@pytest.mark.parametrize("killed", ["engine", "worker"])
def test_a_load_whose_process_is_killed_goes_on_with_the_same_tables(
    server: PostgresqlServer, tmp_path: Path, killed: str
) -> None:
    target = empty_database(server)
    directory = queue(tmp_path / killed, target, "16s")
    worker = start_worker(directory)
    wait_for_windows(directory, 4)
    heartbeat = Heartbeat.read(directory)
    assert heartbeat is not None
    if killed == "engine":
        os.kill(heartbeat.engines[0].pid, signal.SIGKILL)
    else:
        worker.kill()
        worker.wait()
        change_state(EventLog(directory), RunState.INTERRUPTED, time.time(), {"reason": "killed"})
        change_state(EventLog(directory), RunState.STARTING, time.time())
        worker = start_worker(directory)
    with connected_as_owner(target) as connection:
        made = connection.execute("SELECT oid FROM pg_class WHERE relname = 'pgbench_history'").fetchall()
        wait_for_windows(directory, 8)
        kept = connection.execute("SELECT oid FROM pg_class WHERE relname = 'pgbench_history'").fetchall()
        assert made == kept
        question = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
        assert connection.execute(question, (f"cliffwatch {killed}",)).fetchone() == (2,), "no session of the dead load"
    finish(directory, worker)
    windows = windows_of(directory)
    assert len(windows) >= 10
    assert all(window.counters["operations"] == pytest.approx(RATE, rel=0.5) for window in windows)
    assert_empty(server, target)


def test_a_server_that_restarts_is_a_gap_and_a_restart_of_the_engine(server: PostgresqlServer, tmp_path: Path) -> None:
    target = empty_database(server)
    directory = queue(tmp_path / "restarted", target, "16s")
    worker = start_worker(directory)
    wait_for_windows(directory, 4)
    server.stop()
    server.start()
    finish(directory, worker)
    (died, *_) = [event for event in events(directory) if event.name == "died"]
    assert "pgbench: client" in died.detail["message"]
    assert len(windows_of(directory)) >= 8
    assert_empty(server, target)


def test_a_stopped_load_ends_its_sessions_and_drops_its_tables(server: PostgresqlServer, tmp_path: Path) -> None:
    target = empty_database(server)
    directory = queue(tmp_path / "stopped", target, "60s")
    worker = start_worker(directory)
    wait_for_windows(directory, 3)
    change_state(EventLog(directory), RunState.STOPPING, time.time())
    worker.terminate()
    assert finish(directory, worker) == "stopped"
    assert_empty(server, target)


def test_a_load_that_was_over_before_a_worker_came_back_drops_its_tables(
    server: PostgresqlServer, tmp_path: Path
) -> None:
    target = empty_database(server)
    directory = queue(tmp_path / "over", target, "4s")
    worker = start_worker(directory)
    wait_for_windows(directory, 2)
    worker.kill()
    worker.wait()
    time.sleep(4)
    change_state(EventLog(directory), RunState.INTERRUPTED, time.time(), {"reason": "killed"})
    change_state(EventLog(directory), RunState.STARTING, time.time())
    finish(directory, start_worker(directory))
    assert_empty(server, target)


def test_a_database_that_got_something_else_is_refused_when_the_run_begins(
    server: PostgresqlServer, tmp_path: Path
) -> None:
    target = empty_database(server)
    with connected_as_owner(target) as connection:
        connection.execute("CREATE TABLE orders (id int)")
    directory = queue(tmp_path / "refused", target, "4s")
    assert finish(directory, start_worker(directory)) == "failed"
    (ended,) = [event for event in events(directory) if event.name == "load_ended"]
    assert "it has public.orders" in ended.detail["message"]
    with connected_as_owner(target) as connection:
        assert connection.execute("SELECT count(*) FROM orders").fetchone() == (0,)


def test_a_frozen_server_does_not_keep_a_run_from_ending(server: PostgresqlServer, tmp_path: Path) -> None:
    target = empty_database(server)
    directory = queue(tmp_path / "hung", target, "60s")
    worker = start_worker(directory)
    wait_for_windows(directory, 3)
    with server.frozen():
        change_state(EventLog(directory), RunState.STOPPING, time.time())
        worker.terminate()
        assert finish(directory, worker) == "stopped"
    (left,) = [event for event in events(directory) if event.name == "files_left_behind"]
    assert left.detail["path"] == str(target)
