"""docker-compose.yml as the Compose client reads it; no Docker engine is needed."""

import os
import re
import subprocess
from functools import cache
from typing import Any

import yaml
from testkit.checkout import ROOT

FILE = ROOT / "docker-compose.yml"
EXAMPLE = ROOT / ".env.example"
PROFILES = ("ebpf", "nvme", "gateway", "kafka", "redpanda", "postgres")
#: Services that reach one another on the host's loopback; the others have their own networks.
STACK = (
    "cliffwatch",
    "configuration",
    "prometheus",
    "alertmanager",
    "grafana",
    "node-exporter",
    "ebpf-exporter",
    "drive-exporter",
    "gateway",
)
#: Services of the stack that only a profile starts, by the profile.
IN_PROFILES = {"ebpf": "ebpf-exporter", "nvme": "drive-exporter", "gateway": "gateway"}


def configuration(*profiles: str, **variables: str) -> dict[str, Any]:
    """Parsed output of `docker-compose config` with these profiles enabled and these environment variables set."""
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
    """Definition of every service by name, with all profiles enabled and the user's own settings ignored."""
    found: dict[str, dict[str, Any]] = configuration(*PROFILES)["services"]
    return found


def command(service: dict[str, Any]) -> list[str]:
    """Command line of the container, with single dollar signs: the client prints them doubled."""
    return [argument.replace("$$", "$") for argument in service["command"]]


def mounts(service: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """Source, target, read-only flag of each mount; older Compose clients print strings, newer ones mappings."""
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
    """Seconds of a duration such as `1m30s`."""
    units = {"h": 3600, "m": 60, "s": 1}
    return sum(float(amount) * units[unit] for amount, unit in re.findall(r"([\d.]+)([hms])", text))


def variables() -> dict[str, str]:
    """Default of each variable that docker-compose.yml looks up, by name."""
    found: dict[str, str] = {}
    for name, default in re.findall(r"\$\{(\w+):-([^}]*)\}", FILE.read_text(encoding="utf-8")):
        assert found.setdefault(name, default) == default, f"{name} has two defaults"
    return found
