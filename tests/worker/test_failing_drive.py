"""A drive that fails under a load: what was measured until then is kept, and the verdict names what the drive did."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from testkit.emulated import EmulatedDrive, emulated_drive, file_system
from testkit.loops import command
from testkit.storage_engine import SMALL
from testkit.waiting import wait_until
from testkit.worker_runs import (
    assert_no_window_twice,
    events,
    names,
    queue_run,
    report,
    start_worker,
    status,
    window_count,
)

from cliffwatch.analysis.stalls import LONGEST_SECONDS
from cliffwatch.journal import JournalReader, JournalWindow
from cliffwatch.model.run_state import VerdictName
from cliffwatch.model.target import DirectoryTarget

FIO = {"job": "[w]\nrw=write\nbs=16k\nsize=4m\ndirect=1\nrate_iops=100\n"}
LOADS: dict[str, dict[str, Any]] = {"fio": FIO, "storage": SMALL}
STALL_SECONDS = LONGEST_SECONDS + 3.0
Runs = list[tuple[Path, "subprocess.Popen[bytes]"]]


def set_fault(**fault: object) -> Callable[[EmulatedDrive], object]:
    return lambda drive: drive.ask("PUT", "/faults", fault)


#: What is done to the drive, and what the first engine that met it said of it.
FAILURES: dict[str, tuple[Callable[[EmulatedDrive], object], tuple[str, ...]]] = {
    "no write is taken": (set_fault(failing=["write"]), ("Input/output error",)),
    # A file system's own writes fail first, and it may be read-only before a load's writes fail.
    "no flush is done": (set_fault(failing=["flush"]), ("Input/output error", "Read-only file system")),
    "nothing but reads": (set_fault(read_only=True), ("Input/output error", "Read-only file system")),
    "it is gone": (lambda drive: os.kill(drive.pid, signal.SIGKILL), ("Input/output error", "Read-only file system")),
}


@contextmanager
def loaded_drive(tmp_path: Path, soak: str) -> Iterator[tuple[EmulatedDrive, Runs]]:
    """A drive with a load of each engine on its file system, each with some windows in its journal."""
    with ExitStack() as stack:
        drive = stack.enter_context(emulated_drive(tmp_path / "drive", "--capacity=512MiB", "--timing=off"))
        place = stack.enter_context(file_system(drive.node, tmp_path / "mount"))
        runs = [begin(tmp_path / engine, place, engine, soak) for engine in LOADS]
        for _, worker in runs:
            stack.callback(ended, worker)
        for directory, _ in runs:
            wait_until(lambda directory=directory: window_count(directory) >= 3, "a third window")  # type: ignore[misc]
        yield drive, runs


def ended(worker: "subprocess.Popen[bytes]") -> None:
    """Stop a worker that a test left, before its drive goes; it stops its engine."""
    if worker.poll() is None:
        worker.terminate()
        worker.wait(60)


def begin(directory: Path, place: Path, engine: str, soak: str) -> "tuple[Path, subprocess.Popen[bytes]]":
    phases = {"soak": soak, "cool_down": "0s"}
    target = DirectoryTarget(path=str(place))
    queue_run(directory, LOADS[engine], target, engine=engine, window="1s", phases=phases, engine_restarts=2)
    return directory, start_worker(directory)


@pytest.mark.parametrize("failure", FAILURES)
def test_a_drive_that_fails_ends_the_run_and_is_named(tmp_path: Path, failure: str) -> None:
    fail, words = FAILURES[failure]
    with loaded_drive(tmp_path, "10m") as (drive, runs):
        before = {directory: list(JournalReader(directory).windows()) for directory, _ in runs}
        fail(drive)
        for directory, worker in runs:
            assert worker.wait(60) == 0
            check_failed(directory, before[directory], words)


def check_failed(directory: Path, before: list[JournalWindow], words: tuple[str, ...]) -> None:
    finished, coverage = status(directory), report(directory)["coverage"]
    assert finished.verdict is VerdictName.FAILED
    assert_no_window_twice(directory)
    assert list(JournalReader(directory).windows())[: len(before)] == before
    assert coverage["measured_seconds"] >= len(before) - 1.5  # an engine's first window is short by its start
    died = [event.detail["message"] for event in events(directory) if event.name == "died"]
    assert len(died) == 3
    assert any(each in died[0] for each in words), died[0]
    assert " ".join(died[0].split()) in finished.reasons[0]
    left = [event.detail for event in events(directory) if event.name == "files_left_behind"]
    assert len({json.dumps(detail) for detail in left}) == len(left)


def test_a_drive_that_stalls_for_long_does_not_pass_however_rarely_it_does(tmp_path: Path) -> None:
    with loaded_drive(tmp_path, "40s") as (drive, runs):
        drive.ask("PUT", "/faults", {"stall_seconds": STALL_SECONDS})
        for directory, worker in runs:
            assert worker.wait(90) == 0
            assert names(directory, "gap") == []
            finished = status(directory)
            # A machine that is too busy to measure besides makes it invalid; the stall is named all the same.
            assert finished.verdict in (VerdictName.DEGRADED, VerdictName.INVALID), finished.reasons
            assert any(reason.startswith("An operation took 1") for reason in finished.reasons), finished.reasons


def test_a_drive_that_hangs_is_waited_for_and_nothing_is_lost(tmp_path: Path) -> None:
    """Its process is stopped: the kernel gets no answer, and a process that waits for one cannot even be killed."""
    with loaded_drive(tmp_path, "10s") as (drive, runs):
        os.kill(drive.pid, signal.SIGSTOP)
        try:
            ends = time.monotonic() + STALL_SECONDS
            wait_until(lambda: time.monotonic() >= ends, "the end of the load")
            assert [worker.poll() for _, worker in runs] == [None, None]
        finally:
            os.kill(drive.pid, signal.SIGCONT)
        for directory, worker in runs:
            assert worker.wait(90) == 0
            finished = status(directory)
            assert finished.verdict in (VerdictName.DEGRADED, VerdictName.INVALID), finished.reasons
            assert any("stall" in reason for reason in finished.reasons), finished.reasons
            assert_no_window_twice(directory)
    command("sync")
