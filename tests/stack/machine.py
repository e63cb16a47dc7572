"""A machine of a test's own: a state directory and free ports, on which the real service and watchers run."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families
from testkit.checkout import ROOT
from testkit.ports import free_ports

from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.journal import Event, EventType, JournalReader
from cliffwatch.journal.state import status_of
from cliffwatch.model.settings import Settings, read_settings
from cliffwatch.stack.processes import watchers

#: Where `make watchers` builds the block-layer probe.
BUILT = Path(os.environ.get("STATE", ROOT / ".cliffwatch")).resolve() / "ebpf"
PORTS = ("listen", "prometheus", "node_exporter", "ebpf_exporter", "drive_exporter", "alertmanager")


@dataclass(slots=True)
class Machine:
    """`directory` holds all that it leaves behind."""

    directory: Path
    ports: dict[str, int] = field(default_factory=lambda: dict(zip(PORTS, free_ports(len(PORTS)), strict=True)))

    def __post_init__(self) -> None:
        self.state.mkdir(parents=True)
        if BUILT.exists():
            (self.state / "ebpf").symlink_to(BUILT)

    @property
    def state(self) -> Path:
        return self.directory / "state"

    @property
    def settings(self) -> Settings:
        ports = {f"{name}_port": port for name, port in self.ports.items()}
        return read_settings(state_directory=self.state, **ports)

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        variables = {f"CLIFFWATCH_{name.upper()}_PORT": str(port) for name, port in self.ports.items()}
        clean = {name: value for name, value in os.environ.items() if not name.startswith("CLIFFWATCH_")}
        return subprocess.run(
            [sys.executable, "-m", "cliffwatch.cli.main", *arguments],
            env=clean | variables | {"CLIFFWATCH_STATE_DIRECTORY": str(self.state)},
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
        )

    def begin(self, run_id: str, soak: str, **load: Any) -> Path:
        """Start a run of the synthetic engine with windows of 1 s; gives its journal."""
        document = {
            "version": 1,
            "name": "watched",
            "engine": "synthetic",
            "window": "1s",
            "engine_restarts": 100,
            "phases": {"soak": soak},
            "load": load,
        }
        path = self.directory / f"{run_id}.yaml"
        path.write_text(json.dumps(document))
        done = self.run("run", "start", str(path), "--target", f"synthetic:{run_id}", "--id", run_id)
        assert done.returncode == 0, done.stderr
        return self.state / "runs" / run_id

    def process(self, name: str) -> ProcessIdentity:
        """A watcher's process."""
        process = watchers(self.settings)[name].process
        assert process is not None
        return process

    def query(self, promql: str) -> list[dict[str, Any]]:
        """What Prometheus answers to an instant query."""
        url = f"http://127.0.0.1:{self.ports['prometheus']}/api/v1/query"
        result: list[dict[str, Any]] = httpx.get(url, params={"query": promql}).json()["data"]["result"]
        return result

    def failed_evaluations(self) -> dict[str, float]:
        """How often a rule could not be evaluated since Prometheus began, by group; only groups with failures."""
        text = httpx.get(f"http://127.0.0.1:{self.ports['prometheus']}/metrics").text
        [family] = [
            family
            for family in text_string_to_metric_families(text)
            if family.name == "prometheus_rule_evaluation_failures"
        ]
        return {sample.labels["rule_group"]: sample.value for sample in family.samples if sample.value}


def events_of(directory: Path, kind: EventType, *names: str) -> list[Event]:
    """The journal's events of a type, all or those with one of the names."""
    events: Iterable[Event] = (stored.event for stored in JournalReader(directory).events())
    return [event for event in events if event.type is kind and (not names or event.name in names)]


def load_start(journal: Path) -> float:
    status = status_of(stored.event for stored in JournalReader(journal).events())
    assert status is not None
    assert status.load_start is not None
    return status.load_start
