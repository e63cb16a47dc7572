"""Time in which engine or worker did not run is a gap, recorded with its reason, and no window spans it."""

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testkit.loops import MIB, command, loop_drive, mounted
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

from cliffwatch.app.launcher import request_stop
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.journal import JournalReader
from cliffwatch.model.run_state import VerdictName
from cliffwatch.model.target import AnyTarget, DirectoryTarget, SyntheticTarget
from cliffwatch.part.freezes import FreezeWatch

FROZEN_SECONDS = 4.0
FIO = {"job": "[w]\nrw=write\nbs=16k\nsize=16m\ndirect=1\nrate_iops=100\n"}
#: Engines by what they are frozen with: the engine itself, or the part that reads it.
CASES = [("fio", FIO, "engine"), ("storage", SMALL, "engine"), ("synthetic", {}, "engine"), ("fio", FIO, "part")]
REASONS = {"engine": "engine_frozen", "part": "worker_frozen"}


def start(tmp_path: Path, engine: str, load: dict[str, Any], victim: str) -> "tuple[Path, subprocess.Popen[bytes]]":
    place = tmp_path / f"target-{engine}-{victim}"
    place.mkdir()
    target: AnyTarget = SyntheticTarget(name="x") if engine == "synthetic" else DirectoryTarget(path=str(place))
    directory = queue_run(
        tmp_path / f"{engine}-{victim}", load, target, engine=engine, window="1s", phases={"soak": "20s"}
    )
    return directory, start_worker(directory)


def victim_of(directory: Path) -> ProcessIdentity:
    wait_until(lambda: window_count(directory) >= 2, "a second window")
    heartbeat = Heartbeat.read(directory)
    assert heartbeat is not None
    assert heartbeat.engine is not None
    victims = {"engine": heartbeat.engine, "part": heartbeat.parts[0], "worker": heartbeat.worker}
    return victims.get(directory.name.rpartition("-")[2], heartbeat.engine)


def test_a_freeze_is_a_gap_and_no_pass(tmp_path: Path) -> None:
    """All at once, since most of it is waiting."""
    runs = [start(tmp_path, *case) for case in CASES]
    frozen = []
    for directory, _ in runs:
        # Each at its own second window, so that none is over before the last has begun.
        process = victim_of(directory)
        process.send(signal.SIGSTOP)
        frozen.append((process, time.monotonic()))
    seconds = [thawed_after(process, since) for process, since in frozen]
    assert [worker.wait(90) for _, worker in runs] == [0] * len(runs)
    for (directory, _), frozen_seconds in zip(runs, seconds, strict=True):
        check(directory, frozen_seconds, directory.name.rpartition("-")[2])


def thawed_after(process: ProcessIdentity, since: float) -> float:
    """Let a process go on; the seconds for which it was frozen."""
    wait_until(lambda: time.monotonic() - since >= FROZEN_SECONDS, "the end of the freeze")
    process.send(signal.SIGCONT)
    return time.monotonic() - since


def check(directory: Path, frozen_seconds: float, victim: str) -> None:
    assert all(window.end - window.start < 1.5 for window in JournalReader(directory).windows())
    assert_no_window_twice(directory)
    gaps = [event for event in events(directory) if event.type == "gap" and event.name == REASONS[victim]]
    assert sum(gap.detail["seconds"] for gap in gaps) == pytest.approx(frozen_seconds, abs=2.0)
    assert ("frozen" in names(directory, "engine")) == (victim == "engine")
    finished, coverage = status(directory), report(directory)["coverage"]
    assert finished.verdict is VerdictName.INVALID
    assert any("of the requested time was measured" in reason for reason in finished.reasons), finished.reasons
    assert coverage["asked_seconds"] - coverage["measured_seconds"] >= frozen_seconds - 1.0
    assert any(REASONS[victim] in gap["reason"] for gap in coverage["gaps"])


def test_a_worker_that_is_frozen_alone_loses_nothing(tmp_path: Path) -> None:
    directory, worker = start(tmp_path, "synthetic", {}, "worker")
    process = victim_of(directory)
    process.send(signal.SIGSTOP)
    thawed_after(process, time.monotonic())
    assert worker.wait(90) == 0
    assert names(directory, "gap") == []
    assert window_count(directory) == 20
    assert status(directory).verdict is VerdictName.PASS


@pytest.mark.timing(why="a worker that gets no processor is frozen too")
def test_a_target_that_stalls_freezes_no_process(tmp_path: Path) -> None:
    """A file system that lets no write through for a while: the engines run, and what they wait for is measured."""
    with loop_drive(tmp_path / "image", 512 * MIB) as drive:
        command("mkfs.ext4", "-q", drive.node)
        with mounted(drive.node, tmp_path / "mount") as place:
            runs = []
            for engine, load in (("fio", FIO), ("storage", SMALL)):
                target = DirectoryTarget(path=str(place))
                journal = tmp_path / engine
                queue_run(journal, load, target, engine=engine, window="1s", phases={"soak": "10m", "cool_down": "0s"})
                runs.append((journal, start_worker(journal)))
            for journal, _ in runs:
                victim_of(journal)
            command("fsfreeze", "--freeze", place)
            begun = time.monotonic()
            try:
                wait_until(lambda: time.monotonic() - begun >= FROZEN_SECONDS, "the end of the stall")
            finally:
                command("fsfreeze", "--unfreeze", place)
            for journal, worker in runs:
                check_stall(journal)
                request_stop(journal, False)
                assert worker.wait(90) == 0


def check_stall(journal: Path) -> None:
    wait_until(lambda: longest_operation(journal) >= FROZEN_SECONDS - 1.0, f"the stall in {journal.name}")
    assert [name for name in names(journal, "gap") if name.endswith("_frozen")] == []
    assert "window_dropped" not in names(journal, "engine")


def longest_operation(journal: Path) -> float:
    """Of any kind: what stood still may have been the creation of a segment, which an append waits for."""
    operations = [each["max"] or 0.0 for window in JournalReader(journal).windows() for each in window.latency.values()]
    return max(operations, default=0.0)


@pytest.fixture
def family() -> Iterator["subprocess.Popen[bytes]"]:
    """A process with a child, as fio has one for each job."""
    process = subprocess.Popen(["sh", "-c", "sleep 600 & wait"], start_new_session=True)
    yield process
    subprocess.run(["kill", "-KILL", "--", f"-{process.pid}"], check=True)
    process.wait()


def child_of(process: "subprocess.Popen[bytes]") -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait_until(lambda: bool(children.read_text().split()), "the child")
    return int(children.read_text().split()[0])


def test_a_process_that_waits_is_not_frozen_and_one_that_is_stopped_is(family: "subprocess.Popen[bytes]") -> None:
    child, at = child_of(family), [0.0]
    watch = FreezeWatch(lambda: at[0])
    watch.close()
    watch.follow(family.pid)
    at[0] = 1.0
    assert (watch.look(), watch.frozen_since) == ([], None)
    # A job that is stopped stops the load, whatever the others of the engine's processes do.
    subprocess.run(["kill", "-STOP", str(child)], check=True)
    at[0] = 2.0
    wait_until(lambda: watch.look() == [] and watch.frozen_since == 1.0, "the sight of a child that is stopped")
    at[0] = 3.5
    assert watch.within(0.0, 2.0) == (1.0, "engine_frozen")
    assert watch.within(3.0, 4.0) == (0.5, "engine_frozen")
    subprocess.run(["kill", "-CONT", str(child)], check=True)
    (freeze,) = watch.look()
    assert (freeze.start, freeze.end) == (1.0, 3.5)
    assert watch.within(3.4, 9.0)[0] == pytest.approx(0.1)
    assert watch.within(4.0, 9.0) == (0.0, "")


def test_a_timer_that_comes_late_is_a_worker_that_did_not_run() -> None:
    at = [100.0]
    watch = FreezeWatch(lambda: at[0])
    watch.close()
    at[0] = 101.9
    assert watch.look() == []
    at[0] = 131.9
    (freeze,) = watch.look()
    assert (freeze.start, freeze.end, freeze.reason) == (101.9, 131.9, "worker_frozen")
    assert watch.look() == []


def test_an_engine_is_not_blamed_for_time_in_which_its_worker_did_not_run(family: "subprocess.Popen[bytes]") -> None:
    at = [0.0]
    watch = FreezeWatch(lambda: at[0])
    watch.close()
    watch.follow(family.pid)
    subprocess.run(["kill", "-STOP", str(family.pid)], check=True)
    at[0] = 20.0
    wait_until(lambda: "T" in Path(f"/proc/{family.pid}/stat").read_text().rpartition(")")[2], "the stop")
    (worker,) = watch.look()
    assert (worker.start, worker.end, worker.reason) == (0.0, 20.0, "worker_frozen")
    assert watch.frozen_since == 20.0
    at[0] = 20.3
    subprocess.run(["kill", "-CONT", str(family.pid)], check=True)
    (engine,) = watch.look()
    assert (engine.start, engine.end, engine.reason) == (20.0, 20.3, "engine_frozen")
    assert watch.within(0.0, 30.0)[0] == pytest.approx(20.3)
