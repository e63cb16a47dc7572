"""What runs in the containers, executed here: the supervisor, the health checks, the probe with its capabilities."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from testkit import probe
from testkit.compose.composition import configuration, services
from testkit.compose.dockerfile import unpack
from testkit.ports import free_address
from testkit.waiting import wait_until
from testkit.worker_runs import names

from cliffwatch.app.launcher import kill_orphans
from cliffwatch.coordinator.heartbeat import Heartbeat

WORKLOAD = {"version": 1, "name": "steady", "engine": "synthetic", "window": "1s", "phases": {"soak": "1h"}}
ORDER = {"workload": WORKLOAD, "target": {"kind": "synthetic", "name": "nowhere"}}


def passes(check: list[str]) -> bool:
    """Whether a container's health check finds it well; the client doubles the dollars that it prints."""
    form, *words = check
    assert form == "CMD"
    arguments = [word.replace("$$", "$") for word in words]
    programs = {"python": sys.executable}
    done = subprocess.run([programs.get(arguments[0], arguments[0]), *arguments[1:]], capture_output=True, check=False)
    return done.returncode == 0


@dataclass(frozen=True, slots=True)
class Container:
    """The supervisor of a service on a port and in a state directory of its own."""

    state: Path
    address: str
    process: "subprocess.Popen[bytes]"

    def is_ready(self) -> bool:
        port = self.address.partition(":")[2]
        made = configuration(CLIFFWATCH_LISTEN_PORT=port)["services"]["cliffwatch"]
        return passes(made["healthcheck"]["test"])

    def service_pid(self) -> int:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0]) if children else 0

    def start_run(self, run_id: str) -> Path:
        token = (self.state / "token").read_text().strip()
        answer = httpx.put(
            f"http://{self.address}/api/v1/runs/{run_id}",
            json=ORDER,
            headers={"Authorization": f"Bearer {token}"},
            trust_env=False,
        )
        assert answer.status_code == 201, answer.text
        return self.state / "runs" / run_id

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def container(state: Path, image: Path) -> Iterator[Container]:
    """`image` has the files that the service's image has, and no others of the repository."""
    address = free_address()
    variables = {
        "CLIFFWATCH_STATE_DIRECTORY": str(state),
        "CLIFFWATCH_LISTEN_PORT": address.partition(":")[2],
        "CLIFFWATCH_PROMETHEUS_URL": "",
        "PYTHONPATH": str(image / "service"),
    }
    log = image / "log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "deploy.supervise"], cwd=image, env=os.environ | variables, stderr=output
        )
    started = Container(state, address, process)
    try:
        wait_until(lambda: started.is_ready() or b" is started again" in log.read_bytes(), "a service")
        assert started.is_ready(), log.read_text()
        log.unlink()
        yield started
    finally:
        if process.poll() is None:
            started.end()
        for journal in (state / "runs").glob("*/"):
            # In a container the kernel does this.
            if (heartbeat := Heartbeat.read(journal)) is not None:
                heartbeat.worker.send(signal.SIGKILL)
                kill_orphans(journal)


def is_under_load(journal: Path) -> bool:
    return (journal / "windows.jsonl").exists() and (journal / "windows.jsonl").stat().st_size > 0


def worker(journal: Path) -> int:
    heartbeat = Heartbeat.read(journal)
    assert heartbeat is not None
    return heartbeat.worker.pid if heartbeat.worker.is_alive() else 0


@pytest.mark.real(why="time passes until Compose would start it again; test_worker.py kills workers")
def test_a_service_that_dies_comes_back_and_a_container_that_ends_leaves_its_run_to_the_next(tmp_path: Path) -> None:
    image = unpack(tmp_path / "image", "packages", "service")
    with container(tmp_path / "state", image) as first:
        journal = first.start_run("long")
        wait_until(lambda: is_under_load(journal), "the first window")
        before, service = worker(journal), first.service_pid()
        assert str(image) in Path(f"/proc/{before}/environ").read_text()
        os.kill(service, signal.SIGKILL)
        wait_until(lambda: first.service_pid() not in (0, service) and first.is_ready(), "another service")
        assert worker(journal) == before != 0
        assert first.end() == 0
        assert worker(journal) == 0
        assert names(journal, "state")[-1] == "interrupted"

    with container(tmp_path / "state", image):
        wait_until(lambda: worker(journal) not in (0, before), "another worker")


def test_a_service_that_does_not_answer_is_not_well() -> None:
    port = free_address().partition(":")[2]
    made = configuration("ebpf", CLIFFWATCH_LISTEN_PORT=port, CLIFFWATCH_EBPF_EXPORTER_PORT=port)["services"]
    assert not passes(made["cliffwatch"]["healthcheck"]["test"])
    assert not passes(made["ebpf-exporter"]["healthcheck"]["test"])


@pytest.fixture(scope="module")
def built() -> None:
    probe.build()


def test_the_probe_that_answers_is_well(built: None) -> None:
    with probe.running_probe() as running:
        made = configuration("ebpf", CLIFFWATCH_EBPF_EXPORTER_PORT=str(running.port))["services"]["ebpf-exporter"]
        assert passes(made["healthcheck"]["test"])


def loads(capabilities: set[str]) -> bool:
    """Whether the kernel takes the probe's programs from root with these capabilities only."""
    bounds = ",".join(["-all", *(f"+{name.lower()}" for name in sorted(capabilities))])
    check = [str(probe.EXPORTER), f"--config.dir={probe.CONFIGURATION}", "--config.names=block", "--config.strict"]
    limits = ["setpriv", f"--bounding-set={bounds}", "--inh-caps=-all", "--no-new-privs"]
    done = subprocess.run([*limits, *check, "--config.check"], capture_output=True, check=False)
    return done.returncode == 0


def test_the_probe_has_the_capabilities_that_it_needs(built: None) -> None:
    granted = set(services()["ebpf-exporter"]["cap_add"])
    assert loads(granted)
    for capability in granted:
        assert not loads(granted - {capability}), f"{capability} is not needed"
