"""A drive that runs out of clean blocks, known to the run through a Prometheus alone, as a broker's host is."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from testkit.checkout import ROOT
from testkit.storage_engine import running
from testkit.waiting import wait_until
from testkit.worker_runs import queue_run, start_worker
from tests.causes.hosts import assert_garbage_collection, broker_host, wait_for_drive
from tests.observer.observed import ObservedEngine

from cliffwatch.engines.storage.load import StorageLoad
from cliffwatch.labs.aging.lifecycle import AgingDrive
from cliffwatch.model.target import DirectoryTarget, ObservedTarget

#: The drill's load lasts most of three minutes.
PATIENCE_SECONDS = 400.0


def drill() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / "service/cliffwatch/workloads/drill.yaml").read_text())
    return {name: document[name] for name in ("engine", "window", "phases", "load")}


def test_garbage_collection_of_a_drive_in_another_host(
    tmp_path: Path, drill_drive: AgingDrive, monkeypatch: pytest.MonkeyPatch
) -> None:
    with broker_host(tmp_path, drill_drive, "1s") as far:
        monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_URL", far.url)
        target = DirectoryTarget(path=str(drill_drive.mount_point))
        drives = wait_for_drive(far, drill_drive)
        directory = queue_run(tmp_path / "far", target=target, drives=drives, **drill())
        assert start_worker(directory).wait(PATIENCE_SECONDS) == 0
    assert_garbage_collection(directory, drill_drive)


def test_garbage_collection_below_a_load_that_others_make(
    tmp_path: Path, drill_drive: AgingDrive, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = StorageLoad.model_validate(drill()["load"])
    observed: dict[str, Any] = {
        "engine": "observe",
        "window": "1s",
        "phases": {"warm_up": "10s", "baseline": "40s", "soak": "110s"},
        "load": {"latency": {"append": {"histogram": "engine_append_latency_seconds"}}},
    }
    assert drill_drive.mount_point is not None
    log = Path(drill_drive.mount_point) / "log"
    with ObservedEngine() as system, broker_host(tmp_path, drill_drive, "500ms", system.port) as far:
        monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_URL", far.url)
        drives = wait_for_drive(far, drill_drive)
        with running(load, log, seconds=200, window_seconds=0.5) as engine:
            system.follow(engine)
            wait_until(lambda: far.has("engine_append_latency_seconds_count > 0"), "samples of the system")
            target = ObservedTarget(name="orders")
            directory = queue_run(tmp_path / "observed", target=target, drives=drives, **observed)
            assert start_worker(directory).wait(PATIENCE_SECONDS) == 0
    assert_garbage_collection(directory, drill_drive)
