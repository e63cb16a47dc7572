"""docker-compose.yml as the Compose client reads it. No engine is needed, and none is asked."""

import os
import re
import subprocess
from functools import cache
from typing import Any

import yaml
from testkit.checkout import ROOT

FILE = ROOT / "docker-compose.yml"
EXAMPLE = ROOT / ".env.example"
PROFILES = ("ebpf", "nvme", "kafka", "redpanda", "postgres")
#: The services that one host's loopback connects; the others have networks of their own.
STACK = (
    "cliffwatch",
    "configuration",
    "prometheus",
    "alertmanager",
    "grafana",
    "node-exporter",
    "ebpf-exporter",
    "drive-exporter",
)
#: Those of the stack that a profile of their own starts.
IN_PROFILES = {"ebpf": "ebpf-exporter", "nvme": "drive-exporter"}


def configuration(*profiles: str, **variables: str) -> dict[str, Any]:
    """What `docker-compose config` makes of the file, with the service definitions of those profiles."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("CLIFFWATCH_", "COMPOSE_"))
    }
    options = [f"--profile={profile}" for profile in profiles]
    done = subprocess.run(
        ["docker-compose", "--env-file", str(EXAMPLE), "--file", str(FILE), *options, "config"],
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = yaml.safe_load(done.stdout)
    return document


@cache
def services() -> dict[str, dict[str, Any]]:
    """Every service, with all profiles and no settings of anyone's own."""
    found: dict[str, dict[str, Any]] = configuration(*PROFILES)["services"]
    return found


def command(service: dict[str, Any]) -> list[str]:
    """What the container is given; the client doubles the dollars that it prints."""
    return [argument.replace("$$", "$") for argument in service["command"]]


def mounts(service: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """Source, path in the container, and whether it is read-only: older clients print texts, newer ones tables."""
    found = []
    for mount in service.get("volumes", []):
        if isinstance(mount, dict):
            found.append((mount["source"], mount["target"], bool(mount.get("read_only"))))
        else:
            source, target, *options = mount.split(":")
            found.append((source, target, bool(options) and "ro" in options[0].split(",")))
    return found


def published(service: dict[str, Any]) -> list[str]:
    """The host addresses that the service's ports are published on."""
    return [
        str(port["host_ip"]) if isinstance(port, dict) else str(port).rsplit(":", 2)[0]
        for port in service.get("ports", [])
    ]


def seconds(text: str) -> float:
    """Of a duration such as `1m30s`."""
    units = {"h": 3600, "m": 60, "s": 1}
    return sum(float(amount) * units[unit] for amount, unit in re.findall(r"([\d.]+)([hms])", text))


def variables() -> dict[str, str]:
    """Each variable that the file looks up, with its default."""
    found: dict[str, str] = {}
    for name, default in re.findall(r"\$\{(\w+):-([^}]*)\}", FILE.read_text(encoding="utf-8")):
        assert found.setdefault(name, default) == default, f"{name} has two defaults"
    return found
