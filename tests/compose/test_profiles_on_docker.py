"""Profiles of the stack from images: the service on PostgreSQL, a run on Kafka, the probe and the drive exporter.

The engine is that of the Debian after the tests' own, with its Compose 2; test_stack_on_docker.py has an older one,
whose filter of system calls knows nothing of the probe's capabilities.
"""

import re
import ssl
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
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
PROFILES = ("ebpf", "gateway", "kafka", "nvme", "postgres")
#: Those that have a network of their own.
APART = ("kafka", "postgres")
PASSWORD = "not-a-secret"  # of a database that is gone with the test
#: By bcrypt, of the password "not-for-logs".
HASHED = "$2b$04$MfLwbxXYmA8ajGsUlMuSa.38F9IPdzxgfcO4G1rgbUydW3WPINdu2"
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


def guarded(directory: Path) -> Path:
    """Directory with the gateway's file, by the lines of docs/broker-hosts.md, in the place of /etc/cliffwatch."""
    make, certify = (
        line for line in lines_of("Let Prometheus in", "broker-hosts.md") if line.startswith(("install", "openssl"))
    )
    for line in (make, certify, *lines_of("With containers", "broker-hosts.md")[:1]):
        subprocess.run(
            ["bash", "-ec", line.replace("/etc/cliffwatch", str(directory))], check=True, capture_output=True
        )
    file = directory / "gateway.yaml"
    tls = "tls_server_config: {cert_file: gateway.crt, key_file: gateway.key}"
    file.write_text(f"{tls}\nbasic_auth_users: {{prometheus: '{HASHED}'}}\n", encoding="utf-8")
    file.chmod(0o644)
    return directory


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
    settings["CLIFFWATCH_GATEWAY_DIRECTORY"] = str(guarded(directory / "gateway"))
    files = [without_bridge(directory, ports), watched_broker(directory)]
    with engine(RELEASE) as running:
        build_stand_ins(running, *APART, "ebpf-exporter", "gateway")
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


def test_a_database_in_a_container_is_soaked(up: tuple[Stack, dict[str, int]]) -> None:
    its, ports = up
    address = f"postgresql://cliffwatch:{PASSWORD}@{HOST}:{ports['5432']}/cliffwatch"
    its.inside("psql", address, "--command", "CREATE DATABASE soak", container="postgres")
    secrets = "/var/lib/cliffwatch/secrets"
    its.inside("sh", "-c", f"umask 077; mkdir -p {secrets}; echo {PASSWORD} > {secrets}/postgres")
    load = {"scale": 2, "rate": 50, "clients": 2, "password_file": f"{secrets}/postgres"}
    workload = {"engine": "pgbench", "phases": {"baseline": "3s", "soak": "9s"}, "load": load}
    dsn = f"postgresql://cliffwatch@{HOST}:{ports['5432']}/soak"
    its.begin("database", workload, {"kind": "postgres", "dsn": dsn})
    report = its.wait_finished("database")
    assert report["verdict"]["name"] == "pass", report["verdict"]
    assert report["latency"]["transaction"]


def test_the_gateway_gives_the_exporters_to_who_has_the_password(up: tuple[Stack, dict[str, int]]) -> None:
    its, _ = up
    trusted = ssl.create_default_context(cafile=its.settings["CLIFFWATCH_GATEWAY_DIRECTORY"] + "/gateway.crt")
    trusted.check_hostname = False
    base = f"https://{HOST}:{its.port('GATEWAY')}"
    with httpx.Client(trust_env=False, verify=trusted, timeout=30) as client:
        for path, metric in (("/node", "node_"), ("/block", "ebpf_exporter_"), ("/drive", "process_cpu_seconds_total")):
            answer = client.get(base + path, auth=("prometheus", "not-for-logs"))
            assert (answer.status_code, metric in answer.text) == (200, True), path
            assert client.get(base + path).status_code == 401


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
