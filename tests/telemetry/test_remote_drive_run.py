"""A run that watches a drive through a real node_exporter and a real Prometheus, which goes away and comes back."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from testkit.loops import command, loop_drive, mounted
from testkit.node_exporter import node_exporter
from testkit.ports import free_port
from testkit.waiting import wait_until
from testkit.worker_runs import events, names, queue_run, start_worker, status, window_count
from tests.telemetry import hostile_server
from tests.telemetry.hostile_server import HostileServer
from tests.telemetry.prometheus_server import PrometheusServer

from cliffwatch.app.launcher import request_stop
from cliffwatch.journal import JournalReader, JournalWindow, files
from cliffwatch.machine.diskstats import read_counters
from cliffwatch.model.drives import PrometheusDrives
from cliffwatch.model.run_state import RunState
from cliffwatch.model.target import DirectoryTarget
from cliffwatch.telemetry.reader import read

MIB = 1024 * 1024


LOAD: dict[str, Any] = {
    "engine": "fio",
    "window": "1s",
    "phases": {"soak": "40s"},
    "load": {"job": "[write]\nrw=randwrite\ndirect=1\nbs=4k\nsize=16m\nrate_iops=200\nioengine=psync\n"},
}


@contextmanager
def mounted_drive(directory: Path) -> Iterator[tuple[str, Path]]:
    """A loop device's name, and where its file system is mounted."""
    file = directory / "drive.img"
    with file.open("wb") as image:
        image.truncate(128 * MIB)
    with loop_drive(file) as drive:
        command("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", drive.node)
        with mounted(drive.node, directory / "data") as data:
            yield drive.name, data


def drive_windows(directory: Path) -> list[JournalWindow]:
    return [each for each in JournalReader(directory).windows() if "device_write_operations" in each.counters]


def notes(directory: Path) -> list[str]:
    return [event.name for event in events(directory) if event.name.startswith("drives_")]


def test_a_run_watches_a_drive_through_prometheus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    server = PrometheusServer(tmp_path / "prometheus")
    server.scrape("node", port)
    server.record(
        cliffwatch_drive_host_written_bytes_total="1000 * node_disk_written_bytes_total",
        cliffwatch_drive_media_written_bytes_total="2500 * node_disk_written_bytes_total",
    )
    own, servers = PrometheusServer(tmp_path / "own"), tmp_path / "servers.yaml"
    servers.write_text(f"far: {{url: '{server.url}'}}\n")
    monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_URL", own.url)
    monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_SERVERS", str(servers))
    with mounted_drive(tmp_path) as (name, data), node_exporter(port), server, own:
        asked = PrometheusDrives(selector=f'device="{name}"', server="far")
        wait_until(lambda: server.has(f"node_disk_writes_completed_total{{{asked.selector}}}"), "a scrape of the drive")
        number = (Path("/sys/block") / name / "dev").read_text().strip()
        before = read_counters([number])[number]
        directory = queue_run(tmp_path / "far", target=DirectoryTarget(path=str(data)), drives=asked, **LOAD)
        worker = start_worker(directory)
        wait_until(lambda: len(drive_windows(directory)) >= 9, "windows with the drive's counters")
        server.kill()
        wait_until(lambda: notes(directory) == ["drives_missing"], "the note that Prometheus is away")
        server.start()
        wait_until(lambda: notes(directory) == ["drives_missing", "drives_resumed"], "the note that it is back")
        assert worker.wait(120) == 0
        after = read_counters([number])[number]
    found = drive_windows(directory)
    counted = sum(window.counters["device_write_operations"] for window in found)
    assert 0 < counted <= (after - before).write_operations
    for window in found[3:8]:
        assert window.counters["device_write_operations"] == pytest.approx(200, rel=0.5)
        assert 0 < window.gauges["drives_age_seconds"] < 4
    assert [each["name"] for each in JournalReader(directory).facts()["drives"]] == [f"127.0.0.1/{name}"]
    assert found[-1].gauges["device_write_amplification"] == 2.5
    report = json.loads((directory / files.REPORT_JSON).read_text())
    objections = ("No drive is below", "reached the device")
    assert not [each for each in report["verdict"]["reasons"] if any(words in each for words in objections)]
    assert report["layers"]["drives"] == [f"127.0.0.1/{name}"]
    assert report["layers"]["rows"][0]["device_mean_seconds"] > 0
    telemetry = read(directory, ["node_disk_writes_completed_total"])
    assert telemetry is not None
    assert [each.labels["device"] for each in telemetry.of("node_disk_writes_completed_total")] == [f"127.0.0.1/{name}"]


@pytest.mark.parametrize("how", ["end", "stop", "force"])
def test_a_prometheus_that_drips_holds_neither_the_end_of_a_run_nor_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The server is healthy until the run has windows, and drips headers for ever from then on."""
    port, server, servers = free_port(), PrometheusServer(tmp_path / "prometheus"), tmp_path / "servers.yaml"
    server.scrape("node", port)
    servers.write_text(f"far: {{url: '{server.url}'}}\n")
    monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_URL", server.url)
    monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_SERVERS", str(servers))
    with mounted_drive(tmp_path) as (name, data), node_exporter(port):
        asked = PrometheusDrives(selector=f'device="{name}"', server="far")
        with server:
            wait_until(lambda: server.has(f"node_disk_writes_completed_total{{{asked.selector}}}"), "a scrape")
            load = LOAD | {"phases": {"soak": "12s" if how == "end" else "10m"}}
            directory = queue_run(tmp_path / "far", target=DirectoryTarget(path=str(data)), drives=asked, **load)
            worker = start_worker(directory)
            wait_until(lambda: len(drive_windows(directory)) >= 3, "windows with the drive's counters")
        with HostileServer(hostile_server.drip_head, server.port):
            wait_until(lambda: window_count(directory) >= 8, "windows without them")
            if how != "end":
                request_stop(directory, force=how == "force")
            worker.wait(60)
    if how == "force":
        assert names(directory, "note")[-1] == "worker_killed"
    else:
        assert (worker.returncode, status(directory).state) == (0, RunState.FINISHED)
        assert ("stopping" in names(directory, "state")) == (how == "stop")
