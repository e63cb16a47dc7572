"""Profiles of the stack from images: the service on PostgreSQL, a run on Kafka, the probe and the drive exporter.

The engine is that of the Debian after the tests' own, with its Compose 2; test_stack_on_docker.py has an older one,
whose filter of system calls knows nothing of the probe's capabilities.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from testkit.compose.composition import EXAMPLE, FILE
from testkit.compose.stack import HOST, Stack, documentation, stack
from testkit.compose.stand_ins import build_stand_ins
from testkit.docker import engine
from testkit.ports import free_port
from testkit.waiting import wait_until
from tests.install.installed import lines_of

pytestmark = [
    pytest.mark.real(why="an image is built and a stack started"),
    pytest.mark.alone(why="runs whose windows are judged, beside a build"),
    # The first build on a machine fetches and compiles all.
    pytest.mark.timeout(2700),
]
RELEASE = "trixie"
PROFILES = ("ebpf", "kafka", "nvme", "postgres")
#: Those that have a network of their own.
APART = ("kafka", "postgres")
PASSWORD = "not-a-secret"  # of a database that is gone with the test
BROKER: dict[str, Any] = {
    "engine": "kafka",
    "phases": {"baseline": "5s", "soak": "15s"},
    "load": {
        "topics": {"partitions": 4, "replication_factor": 1},
        "producer": {"producers": 1, "rate": 200, "record_size": "1KiB", "acks": "all"},
        "consumer": {"consumers": 1},
    },
}


def without_bridge(directory: Path, ports: dict[str, int]) -> Path:
    """The Compose file for an engine without a bridge: what has a network of its own gets the host's loopback."""
    document = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    for name in APART:
        its = document["services"][name]
        del its["ports"]
        text = yaml.safe_dump(its | {"network_mode": "host"})
        for usual, other in ports.items():
            text = re.sub(rf"\b{usual}\b", str(other), text)
        document["services"][name] = yaml.safe_load(text.replace("://:", f"://{HOST}:"))
    document["services"]["postgres"]["environment"]["PGPORT"] = ports["5432"]
    path = directory / "docker-compose.yml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def watched_broker(directory: Path) -> Path:
    """What docs/compose.md writes into a file of the user's own, so that the drive below a broker is watched."""
    [block] = re.findall(
        r"^    (services:\n(?:     +.*\n)*?.*kafka:/var/lib/kafka/data:ro.*)$", documentation(), re.MULTILINE
    )
    path = directory / "broker.yml"
    path.write_text(block, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stack, dict[str, int]]]:
    """A stack with these profiles, and which ports it has in place of the usual."""
    directory = tmp_path_factory.mktemp("profiles")
    ports = {usual: free_port() for usual in ("5432", "9092", "9093")}
    [url] = re.findall(r"^#CLIFFWATCH_DATABASE_URL=(.*)$", EXAMPLE.read_text(encoding="utf-8"), re.MULTILINE)
    settings = {
        "COMPOSE_PROFILES": ",".join(PROFILES),
        "CLIFFWATCH_POSTGRES_PASSWORD": PASSWORD,
        "CLIFFWATCH_DATABASE_URL": url.replace("PASSWORD", PASSWORD).replace("5432", str(ports["5432"])),
    }
    files = [without_bridge(directory, ports), watched_broker(directory)]
    with engine(RELEASE) as running:
        build_stand_ins(running, *APART, "ebpf-exporter")
        with stack(running, directory, files, **settings) as described:
            _, start = lines_of("Images")
            described.shell(start)
            described.wait_healthy()
            yield described, ports


def test_the_service_keeps_its_runs_in_postgresql(up: tuple[Stack, dict[str, int]]) -> None:
    its, ports = up
    its.begin("stored", {"engine": "synthetic", "phases": {"soak": "3s"}}, {"kind": "synthetic", "name": "nothing"})
    assert its.wait_finished("stored")["verdict"]["name"] == "pass"
    table = "SELECT id FROM runs"
    address = f"postgresql://cliffwatch:{PASSWORD}@{HOST}:{ports['5432']}/cliffwatch"
    assert "stored" in its.inside("psql", address, "--tuples-only", "--command", table, container="postgres")
    # A database that ends and comes back is waited for.
    its.run("restart", "postgres")
    wait_until(lambda: its.states()["cliffwatch"] == "healthy" and its.is_ready(), "a service that is ready")
    assert its.api("GET", "/runs/stored")["state"] == "finished"


def test_a_run_on_the_broker_proves_its_records_and_names_the_drive_below(up: tuple[Stack, dict[str, int]]) -> None:
    its, ports = up
    target = f"broker:{HOST}:{ports['9092']}@/var/lib/kafka/data"
    (its.directory / "broker.yaml").write_text(
        yaml.safe_dump({"version": 1, "name": "broker", "window": "1s"} | BROKER)
    )
    its.shell("docker compose exec -T cliffwatch cliffwatch workload add /dev/stdin < broker.yaml")
    its.inside("cliffwatch", "run", "start", "broker", "--id", "broker", "--target", target, "--wait")
    report = its.wait_finished("broker")
    assert report["verdict"]["name"] == "pass", report["verdict"]
    [verified] = its.events("broker", name="verification")
    counts = {name: verified["detail"][name] for name in ("lost", "duplicated", "corrupted")}
    assert counts == {"lost": 0, "duplicated": 0, "corrupted": 0}
    assert verified["detail"]["acknowledged"] > 3000
    assert its.query('max_over_time(cliffwatch_file_system_info{run_id="broker"}[10m])'), "the broker's drive"


def test_the_probe_and_the_drive_exporter_are_well_and_scraped(up: tuple[Stack, dict[str, int]]) -> None:
    its, _ = up
    assert {"ebpf-exporter", "drive-exporter"} <= set(its.containers())
    requests = "ebpf_exporter_cliffwatch_block_device_latency_seconds_count"
    for query in ('up{job="ebpf"} == 1', 'up{job="drive"} == 1', requests):
        wait_until(partial(its.query, query), query)
    assert its.unhealthy_rules() == []


def test_the_probe_has_given_up_its_capabilities(up: tuple[Stack, dict[str, int]]) -> None:
    its, _ = up
    status = its.inside("cat", "/proc/1/status", container="ebpf-exporter")
    [effective] = re.findall(r"^CapEff:\s+(\w+)$", status, re.MULTILINE)
    assert int(effective, 16) == 0
