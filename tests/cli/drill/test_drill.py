"""The drill through the real stack: the three variants differ as they should, and nothing stays if it is cut short."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from testkit.checkout import PROGRAMS
from testkit.waiting import wait_until
from tests.labs.aging.machine import State
from tests.stack.machine import Machine

pytestmark = [
    pytest.mark.timing(why="a drive that gets no processor is slow without cleaning anything"),
    # A variant takes 200 s.
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine whose service and watchers are up."""
    machine = Machine(tmp_path_factory.mktemp("drill"))
    (machine.state / "programs").symlink_to(PROGRAMS)
    try:
        done = machine.run("up")
        assert done.returncode == 0, done.stderr
        yield machine
    finally:
        machine.run("drive", "detach", "drill", "--delete")
        machine.run("down")


def remains(machine: Machine) -> list[str]:
    return State(machine.state).remains()


def drilled(machine: Machine, *flags: str) -> dict[str, Any]:
    """What the drill said as JSON, after it showed everything that it should."""
    done = machine.run("drill", *flags, "--output", "json")
    assert done.returncode == 0, done.stderr + done.stdout
    assert remains(machine) == []
    found: dict[str, Any] = json.loads(done.stdout)
    assert [each for each in found["expectations"] if not each["holds"]] == []
    return found


def test_a_drive_without_trim_falls_off_the_cliff_and_raises_the_alert(
    machine: Machine,
) -> None:
    found = drilled(machine, "--variant", "aging")
    assert found["verdict"] == "degraded"
    report = json.loads((machine.state / "runs" / found["run_id"] / "report.json").read_text())
    # The series of the drive, of the block layer and of the run go by the same name of it.
    assert report["layers"]["drives"] == [found["device"]]
    (cliff, *_) = [finding for finding in report["findings"] if finding["kind"] == "cliff"]
    assert cliff["drive"]["name"] == found["device"]
    assert cliff["drive"]["serial"].startswith("AGING"), "the serial that the drive's own metrics have"


@pytest.mark.parametrize("variant", ["trim", "over-provisioned"])
def test_a_drive_that_is_trimmed_or_partly_left_empty_does_not_fall(machine: Machine, variant: str) -> None:
    drilled(machine, "--variant", variant)


@contextmanager
def begun(machine: Machine) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A drill whose run makes load; its process and the run's id."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CLIFFWATCH_")}
    ports = {f"CLIFFWATCH_{name.upper()}_PORT": str(port) for name, port in machine.ports.items()}
    process = subprocess.Popen(
        [sys.executable, "-m", "cliffwatch.cli.main", "drill"],
        env=environment | ports | {"CLIFFWATCH_STATE_DIRECTORY": str(machine.state)},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:

        def running() -> list[dict[str, Any]]:
            assert process.poll() is None, process.communicate()
            done = machine.run("run", "list", "--state", "running", "--output", "json")
            return [run for run in json.loads(done.stdout) if run["phase"] in ("warm_up", "baseline")]

        (run,) = wait_until(running, "the drill's run makes load")
        yield process, run["id"]
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_a_drill_that_is_ended_stops_its_run_and_takes_its_drive_away(machine: Machine) -> None:
    with begun(machine) as (process, run_id):
        process.send_signal(signal.SIGTERM)
        said = process.communicate()[1]
        assert process.returncode == 130, said
    assert remains(machine) == []
    assert json.loads(machine.run("run", "show", run_id, "--output", "json").stdout)["verdict"] == "stopped"


def test_a_drill_that_is_killed_leaves_a_drive_that_is_found_and_removed_once_its_run_is_over(machine: Machine) -> None:
    with begun(machine) as (process, run_id):
        process.send_signal(signal.SIGKILL)
        process.communicate()
    busy = machine.run("drive", "clean")
    assert busy.returncode == 2
    assert "cannot be unmounted" in busy.stderr
    assert machine.run("run", "stop", run_id, "--force").returncode == 0
    machine.run("run", "watch", run_id)
    cleaned = machine.run("drive", "clean")
    assert "removed the drive drill" in cleaned.stderr
    assert remains(machine) == []


def test_another_machines_service_cannot_soak_the_drive_of_this_one(machine: Machine) -> None:
    done = machine.run("--url", "http://127.0.0.1:9", "drill")
    assert done.returncode == 2
    assert "--url: the drill's drive is on this machine" in done.stderr
