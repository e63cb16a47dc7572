"""A host with a drive that ages, as a Prometheus knows it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testkit.node_exporter import node_exporter
from testkit.ports import free_port
from tests.telemetry.prometheus_server import PrometheusServer

from cliffwatch.labs.aging.lifecycle import AgingDrive


@contextmanager
def broker_host(
    directory: Path, drive: AgingDrive, interval: str, system_port: int | None = None
) -> Iterator[PrometheusServer]:
    """A Prometheus that scrapes the drive's host, which it knows as broker-1, and what runs there."""
    port = free_port()
    targets = {"node": f"127.0.0.1:{port}", "drive": str(drive.url).removeprefix("http://")}
    targets |= {} if system_port is None else {"system": f"127.0.0.1:{system_port}"}
    scrapes = []
    for number, (job, target) in enumerate(targets.items(), 9100):
        labels = {"instance": f"broker-1:{number}"} | ({"device": drive.device} if job == "drive" else {})
        scrapes.append({"job_name": job, "static_configs": [{"targets": [target], "labels": labels}]})
    server = PrometheusServer(directory / "prometheus")
    server.configure({"global": {"scrape_interval": interval}, "scrape_configs": scrapes})
    with node_exporter(port), server:
        yield server
