"""A real Kafka whose log is on a drive that ages, on a host of its own, beside what a run with the local drive says."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from testkit.kafka_broker import start_cluster
from testkit.network_namespace import other_host
from testkit.worker_runs import queue_run, start_worker
from tests.causes.hosts import assert_garbage_collection, broker_host, wait_for_drive

from cliffwatch.journal import files
from cliffwatch.labs.aging.lifecycle import AgingDrive
from cliffwatch.model.drives import PrometheusDrives
from cliffwatch.model.target import BrokerTarget

PATIENCE_SECONDS = 400.0
#: Half of what the drive is asked for: each of two runs sends it, and syncs each batch.
PARTITIONS, RATE = 8, 600
LOAD: dict[str, Any] = {
    "topics": {
        "partitions": PARTITIONS,
        "settings": {"flush.messages": "1", "segment.bytes": str(16 << 20), "retention.bytes": str(88 << 20)},
    },
    "producer": {"rate": RATE, "record_size": "16KiB", "acks": "all", "linger": "5ms"},
}


def begin(directory: Path, target: BrokerTarget, drives: PrometheusDrives | None) -> Path:
    return queue_run(
        directory,
        target=target,
        drives=drives,
        engine="kafka",
        window="1s",
        phases={"warm_up": "10s", "baseline": "40s", "soak": "150s"},
        load=LOAD,
    )


def onset_of(directory: Path) -> float:
    """Onset of the first cliff, in seconds since the epoch."""
    report = json.loads((directory / files.REPORT_JSON).read_text())
    cliff = next(each for each in report["findings"] if each["kind"] == "cliff")
    return datetime.fromisoformat(report["run"]["load_start"]).timestamp() + float(cliff["onset_seconds"])


def test_garbage_collection_below_a_broker_on_another_host(
    tmp_path: Path, drill_drive: AgingDrive, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert drill_drive.mount_point is not None
    data = Path(drill_drive.mount_point) / "kafka"
    settings = {"log.retention.check.interval.ms": "1000", "log.dirs": str(data)}
    with other_host() as host, broker_host(tmp_path, drill_drive, "1s", other=host) as far:
        cluster = start_cluster(tmp_path / "broker", settings=settings, other=host)
        try:
            monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_URL", far.url)
            drives = wait_for_drive(far, drill_drive)
            there = BrokerTarget(bootstrap_servers=[cluster.bootstrap])
            here = BrokerTarget(bootstrap_servers=[cluster.bootstrap], data_directories=[str(data)])
            runs = [begin(tmp_path / "far", there, drives), begin(tmp_path / "near", here, None)]
            workers = [start_worker(run) for run in runs]
            assert [worker.wait(PATIENCE_SECONDS) for worker in workers] == [0, 0]
        finally:
            cluster.stop()
    assert_garbage_collection(runs[0], drill_drive)
    assert abs(onset_of(runs[0]) - onset_of(runs[1])) <= 2.0
