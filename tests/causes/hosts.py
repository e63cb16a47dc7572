"""A host with a drive that ages, as a Prometheus knows it."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from testkit.network_namespace import OtherHost
from testkit.node_exporter import node_exporter
from testkit.ports import free_port
from testkit.waiting import wait_until
from tests.telemetry.prometheus_server import PrometheusServer

from cliffwatch.journal import JournalReader, files
from cliffwatch.labs.aging.lifecycle import AgingDrive
from cliffwatch.model.drives import PrometheusDrives


@contextmanager
def broker_host(
    directory: Path,
    drive: AgingDrive,
    interval: str,
    system_port: int | None = None,
    other: OtherHost | None = None,
) -> Iterator[PrometheusServer]:
    """A Prometheus that scrapes the drive's host, which it knows as broker-1, and what runs there; with `other`, both
    run on that host, where the drive's own figures are forwarded."""
    port = free_port()
    there = () if other is None else other.prefix
    targets = {"node": f"127.0.0.1:{port}", "drive": str(drive.url).removeprefix("http://")}
    targets |= {} if system_port is None else {"system": f"127.0.0.1:{system_port}"}
    scrapes = []
    for number, (job, target) in enumerate(targets.items(), 9100):
        labels = {"instance": f"broker-1:{number}"} | ({"device": drive.device} if job == "drive" else {})
        scrapes.append({"job_name": job, "static_configs": [{"targets": [target], "labels": labels}]})
    server = PrometheusServer(directory / "prometheus", other)
    server.configure({"global": {"scrape_interval": interval}, "scrape_configs": scrapes})
    with ExitStack() as running:
        if other is not None:
            running.enter_context(other.forwarded(int(targets["drive"].rpartition(":")[2])))
        running.enter_context(node_exporter(port, there))
        yield running.enter_context(server)


def wait_for_drive(far: PrometheusServer, drive: AgingDrive) -> PrometheusDrives:
    """Wait until Prometheus knows the drive; returns how a run asks for it."""
    asked = PrometheusDrives(selector=f'instance=~"broker-.*",device="{drive.device}"')
    for metric in ("node_disk_writes_completed_total", "cliffwatch_drive_media_written_bytes_total"):
        wait_until(lambda metric=metric: far.has(f"{metric}{{{asked.selector}}}"), metric)  # type: ignore[misc]
    return asked


def assert_garbage_collection(directory: Path, drive: AgingDrive) -> None:
    """The report has a cliff by garbage collection of the drive, as broker-1 has it, in its verdict."""
    report = json.loads((directory / files.REPORT_JSON).read_text())
    cliffs = [each for each in report["findings"] if each["kind"] == "cliff"]
    assert cliffs, report["verdict"]
    name = f"broker-1/{drive.device}"
    assert cliffs[0]["cause"]["name"] == "drive_garbage_collection", json.dumps(cliffs[0], indent=1)
    assert cliffs[0]["drive"]["name"] == name
    assert name in report["verdict"]["reasons"][0]
    windows = list(JournalReader(directory).windows())
    known = [window for window in windows if "device_write_operations" in window.counters]
    assert len(known) > 0.8 * len(windows)
