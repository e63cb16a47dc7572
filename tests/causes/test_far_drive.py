"""A drive that runs out of clean blocks, known to the run through a Prometheus alone, as a broker's host is."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from testkit.checkout import ROOT
from testkit.node_exporter import node_exporter
from testkit.ports import free_port
from testkit.waiting import wait_until
from testkit.worker_runs import queue_run, start_worker
from tests.labs.aging.machine import State
from tests.telemetry.prometheus_server import PrometheusServer

from cliffwatch.base.resources import DRILL_PROFILE
from cliffwatch.cli.aging import drive_settings
from cliffwatch.journal import JournalReader, files
from cliffwatch.labs.aging.lifecycle import AgingDrive, AttachRequest
from cliffwatch.model.drives import PrometheusDrives
from cliffwatch.model.target import DirectoryTarget

#: The drill's load lasts most of three minutes.
PATIENCE_SECONDS = 400.0


@pytest.fixture
def drill_drive(state: State) -> AgingDrive:
    """The small drive of a drill, whose file system discards nothing; its content is in memory."""
    settings = drive_settings(DRILL_PROFILE, None, [])
    return state.attach(AttachRequest(settings, content_directory=Path("/dev/shm")))  # the drive names it


@pytest.fixture
def far(tmp_path: Path, drill_drive: AgingDrive) -> Iterator[PrometheusServer]:
    """A Prometheus that scrapes the drive's host, which it knows as broker-1, once a second."""
    port = free_port()
    jobs = {"node": (f"127.0.0.1:{port}", {}), "drive": (str(drill_drive.url).removeprefix("http://"), drill_drive)}
    scrapes = [
        {
            "job_name": job,
            "static_configs": [
                {
                    "targets": [target],
                    "labels": {"instance": f"broker-1:{number}"} | ({"device": drill_drive.device} if drive else {}),
                }
            ],
        }
        for number, (job, (target, drive)) in enumerate(jobs.items(), 9100)
    ]
    server = PrometheusServer(tmp_path / "prometheus")
    server.configure({"global": {"scrape_interval": "1s"}, "scrape_configs": scrapes})
    with node_exporter(port), server:
        yield server


def drill() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / "service/cliffwatch/workloads/drill.yaml").read_text())
    return {name: document[name] for name in ("engine", "window", "phases", "load")}


def test_garbage_collection_of_a_drive_in_another_host(
    tmp_path: Path, drill_drive: AgingDrive, far: PrometheusServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_URL", far.url)
    asked = PrometheusDrives(selector=f'instance=~"broker-.*",device="{drill_drive.device}"')
    for metric in ("node_disk_writes_completed_total", "cliffwatch_drive_media_written_bytes_total"):
        wait_until(lambda metric=metric: far.has(f"{metric}{{{asked.selector}}}"), metric)  # type: ignore[misc]
    target = DirectoryTarget(path=str(drill_drive.mount_point))
    directory = queue_run(tmp_path / "far", target=target, drives=asked, **drill())
    assert start_worker(directory).wait(PATIENCE_SECONDS) == 0
    report = json.loads((directory / files.REPORT_JSON).read_text())
    cliffs = [each for each in report["findings"] if each["kind"] == "cliff"]
    assert cliffs, report["verdict"]
    name = f"broker-1/{drill_drive.device}"
    assert cliffs[0]["cause"]["name"] == "drive_garbage_collection", json.dumps(cliffs[0], indent=1)
    assert cliffs[0]["drive"]["name"] == name
    assert name in report["verdict"]["reasons"][0]
    windows = list(JournalReader(directory).windows())
    known = [window for window in windows if "device_write_operations" in window.counters]
    assert len(known) > 0.8 * len(windows)
