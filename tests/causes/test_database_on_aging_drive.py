"""A PostgreSQL server on a drive that ages: how much of a commit is the drive, and a checkpoint that is no cliff."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from testkit.postgres import running_server
from testkit.worker_runs import queue_run, start_worker
from tests.causes.hosts import broker_host
from tests.engines.pgbench.databases import empty_database
from tests.labs.aging.machine import State

from cliffwatch.base.resources import DRILL_PROFILE
from cliffwatch.cli.aging import drive_settings
from cliffwatch.journal import files
from cliffwatch.labs.aging.lifecycle import AgingDrive, AttachRequest
from cliffwatch.model.target import PostgresTarget

#: The tables are made in a minute, the load lasts three.
PATIENCE_SECONDS = 600.0


@contextmanager
def database_on(drive: AgingDrive, **settings: str) -> Iterator[PostgresTarget]:
    """An empty database of a server whose data is on the drive, and which is set as given."""
    assert drive.mount_point is not None
    with running_server(settings, Path(drive.mount_point)) as server:
        target = empty_database(server)
        with server.connected() as connection:
            for right in ("SET ON PARAMETER track_wal_io_timing", "pg_checkpoint"):
                connection.execute(f"GRANT {right} TO {target.database.user}".encode())
        yield PostgresTarget(dsn=target.dsn, data_directories=[str(server.data)])


def reported(directory: Path) -> dict[str, Any]:
    assert start_worker(directory).wait(PATIENCE_SECONDS) == 0
    report: dict[str, Any] = json.loads((directory / files.REPORT_JSON).read_text())
    return report


def test_a_drive_that_collects_garbage_is_found_below_the_commits_that_wait_for_it(
    tmp_path: Path, drill_drive: AgingDrive, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"checkpoint_timeout": "30s", "max_wal_size": "192MB", "min_wal_size": "64MB"}
    with broker_host(tmp_path, drill_drive, "1s") as host, database_on(drill_drive, **settings) as target:
        monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_URL", host.url)
        report = reported(
            queue_run(
                tmp_path / "aged",
                target=target,
                engine="pgbench",
                window="1s",
                phases={"warm_up": "5s", "baseline": "30s", "soak": "130s"},
                load={"scale": 75, "clients": 16, "rate": 800},
            )
        )
    cliff = next(each for each in report["findings"] if each["kind"] == "cliff")
    assert cliff["cause"]["name"] == "drive_garbage_collection", json.dumps(cliff, indent=1)
    assert cliff["drive"]["name"] == drill_drive.device
    rows = {row.get("phase", row["span"]): row for row in report["transactions"]["rows"]}
    before, after = rows["baseline"], rows["soak"]
    assert after["drive_write_seconds"] > 3 * before["drive_write_seconds"]
    # Most of what a transaction takes longer, once it has begun, is its wait for the WAL: the drive's part.
    longer = after["service_seconds"] - before["service_seconds"]
    assert after["wal_seconds"] - before["wal_seconds"] > 0.6 * longer
    # Samples of what sessions wait for, and clocks in the server, agree while the drive is healthy.
    assert before["wal_seconds"] == pytest.approx(before["wal_flush_seconds"], rel=0.8)
    assert 0.7 < before["wal_flushes"] < 1.3
    assert "waiting for the WAL" in report["transactions"]["sentence"]


def test_spikes_of_checkpoints_are_no_cliff(tmp_path: Path, state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a drive with room for all that is written, checkpoints are written at once, every half a minute."""
    settings = drive_settings(DRILL_PROFILE, "4GiB", [])
    drive = state.attach(AttachRequest(settings, content_directory=Path("/dev/shm")))  # the drive names it
    sudden = {"checkpoint_timeout": "30s", "checkpoint_completion_target": "0", "max_wal_size": "4GB"}
    with broker_host(tmp_path, drive, "1s") as host, database_on(drive, shared_buffers="512MB", **sudden) as target:
        monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_URL", host.url)
        report = reported(
            queue_run(
                tmp_path / "spikes",
                target=target,
                engine="pgbench",
                window="1s",
                phases={"warm_up": "10s", "baseline": "40s", "soak": "100s"},
                load={"scale": 50, "clients": 8, "rate": 300},
            )
        )
    assert not [each for each in report["findings"] if each["kind"] == "cliff"], report["verdict"]
    assert {each["cause"]["name"] for each in report["findings"]} <= {"checkpoint"}
    rows = {row["span"]: row for row in report["transactions"]["rows"]}
    within, between = rows["checkpoint"], rows["between_checkpoints"]
    assert within["response_p99_seconds"] > 5 * between["response_p99_seconds"]
    assert within["wal_seconds"] > 5 * between["wal_seconds"]
    assert "While a checkpoint was written" in report["transactions"]["sentence"]
    completed = [event for event in report["events"] if event["name"] == "checkpoint_completed"]
    assert len(completed) >= 4
