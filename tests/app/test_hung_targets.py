"""A target that does not answer: what waits for it in the kernel cannot be killed, and a run is stopped all the same.

The file system is frozen: who writes to it waits, uninterruptibly, until it is thawed.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from testkit.loops import MIB, command, loop_drive, mounted
from testkit.waiting import wait_until
from testkit.worker_runs import events, names, queue_run, report, start_worker, status, window_count
from tests.app.machine import Machine

from cliffwatch.app.launcher import request_stop, worker_is_alive
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.journal import EventLog
from cliffwatch.journal.state import change_state
from cliffwatch.model.request import RunRequest
from cliffwatch.model.run_state import RunState, VerdictName
from cliffwatch.model.target import DirectoryTarget

JOB = "[w]\nioengine=psync\nrw=write\nbs=16k\nsize=8m\ndirect=1\nrate_iops=100\n"
HUNG_WORKER = """
import os, sys
from pathlib import Path
from cliffwatch.base import locks
from cliffwatch.coordinator.heartbeat import Heartbeat
locks.hold(Path(sys.argv[1]) / "worker.lock")
Heartbeat.of_this_process().write(Path(sys.argv[1]))
os.mkdir(sys.argv[2])
"""


@dataclass(frozen=True, slots=True)
class Volume:
    """A mounted file system that can be frozen and thawed."""

    path: Path

    @contextmanager
    def frozen(self) -> Iterator[None]:
        command("fsfreeze", "--freeze", self.path)
        try:
            yield
        finally:
            command("fsfreeze", "--unfreeze", self.path)


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Volume]:
    with loop_drive(tmp_path / "volume.img", 64 * MIB) as drive:
        command("mkfs.ext4", "-q", drive.node)
        with mounted(drive.node, tmp_path / "volume") as path:
            yield Volume(path)


def request(volume: Volume) -> RunRequest:
    workload = {
        "version": 1,
        "name": "hung",
        "engine": "fio",
        "window": "1s",
        "phases": {"soak": "1h"},
        "stop_grace": "1s",
        "load": {"job": JOB},
    }
    target = DirectoryTarget(path=str(volume.path))
    return RunRequest.model_validate({"workload": workload, "target": target.model_dump()})


def hung_process(directory: Path) -> ProcessIdentity:
    """The one that the run names as not ending."""
    [event] = [event for event in events(directory) if event.name == "cannot_end"]
    process = ProcessIdentity.of(int(event.detail["pid"]))
    assert process is not None
    assert process.is_killed()
    assert f"process {process.pid} (" in event.detail["what"]
    return process


def assert_left_to_the_drive(directory: Path, volume: Volume, process: ProcessIdentity) -> None:
    """The run ended without what hangs, and says what there is to do."""
    assert status(directory).state is RunState.FINISHED
    assert status(directory).verdict is not VerdictName.PASS
    assert report(directory)["verdict"]["name"] == status(directory).verdict
    [left] = [event for event in events(directory) if event.name == "files_left_behind"]
    assert left.detail["path"] == str(volume.path / f"cliffwatch-{directory.name}")
    assert f"process {process.pid} (" in left.detail["message"]
    assert (volume.path / f"cliffwatch-{directory.name}").is_dir()


def test_a_stop_ends_without_the_engine_and_the_next_run_waits_for_it(volume: Volume, machine: Machine) -> None:
    machine.service.submit(request(volume), "test", "hung")
    directory, following = machine.runs_directory / "hung", machine.runs_directory / "following"
    machine.tick_until(directory, RunState.RUNNING)
    wait_until(lambda: window_count(directory) >= 2, "a second window")
    with volume.frozen():
        request_stop(directory, force=False)
        machine.tick_until(directory, RunState.FINISHED)
        process = hung_process(directory)
        assert_left_to_the_drive(directory, volume, process)
        assert "worker_killed" not in names(directory, "note")
        machine.service.submit(request(volume), "test", "following")
        for _ in range(3):
            machine.reconciler.tick()
        assert status(following).state is RunState.QUEUED
        [waits] = [event for event in events(following) if event.name == "target_hangs"]
        assert waits.detail["run"] == "hung"
        assert f"process {process.pid} (" in waits.detail["what"]
    machine.tick_until(following, RunState.RUNNING)
    assert not process.is_alive()
    request_stop(following, force=False)
    machine.tick_until(following, RunState.FINISHED)


def test_a_stop_by_force_ends_without_the_engine(volume: Volume, machine: Machine) -> None:
    machine.service.submit(request(volume), "test", "flush")
    directory = machine.runs_directory / "flush"
    machine.tick_until(directory, RunState.RUNNING)
    wait_until(lambda: window_count(directory) >= 2, "a second window")
    with volume.frozen():
        request_stop(directory, force=True)
        machine.tick_until(directory, RunState.FINISHED)
        assert_left_to_the_drive(directory, volume, hung_process(directory))
        hung = hung_process(directory)
    wait_until(lambda: not hung.is_alive(), "the end of what hung")


def test_a_worker_that_hangs_itself_is_replaced_by_one_that_makes_the_report(volume: Volume, machine: Machine) -> None:
    target = DirectoryTarget(path=str(volume.path))
    load = {"job": JOB}
    directory = queue_run(machine.runs_directory / "hung", load, target, engine="fio", phases={"soak": "1h"})
    # A load since 1970 would take long to collect from a Prometheus that runs on this machine.
    begun = time.time()
    span = {"load_start": begun, "load_stop": begun + 3600}
    change_state(EventLog(directory), RunState.RUNNING, begun, span)
    command_line = [sys.executable, "-c", HUNG_WORKER, str(directory), str(volume.path / "new")]
    with volume.frozen():
        hung = subprocess.Popen(command_line)
        wait_until(lambda: Heartbeat.read(directory), "the worker")
        wait_until(lambda: " D " in Path(f"/proc/{hung.pid}/stat").read_text(), "a worker that hangs")
        request_stop(directory, force=True)
        assert not worker_is_alive(directory)
        for state in (RunState.INTERRUPTED, RunState.STARTING):
            change_state(EventLog(directory), state, begun + 1)
        assert start_worker(directory).wait(60) == 0
        assert status(directory).state is RunState.FINISHED
        assert hung_process(directory).pid == hung.pid
    assert hung.wait(60) == -signal.SIGKILL
