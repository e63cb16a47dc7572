"""A run with several targets: a part for each, with its own gate, windows, percentiles and drive."""

import json
import signal
import time
from pathlib import Path

import pytest
from testkit.loops import MIB, command, loop_drive, mounted
from testkit.waiting import wait_until
from testkit.worker_runs import (
    assert_no_window_twice,
    events,
    execute_run,
    names,
    queue_run,
    report,
    start_worker,
    status,
    window_count,
)

from cliffwatch.app.launcher import request_stop
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.journal import EventLog, JournalReader, JournalWindow, files
from cliffwatch.journal.state import change_state
from cliffwatch.model.run_state import RunState, VerdictName
from cliffwatch.model.target import DirectoryTarget, SyntheticTarget

ONE, OTHER = SyntheticTarget(name="one"), SyntheticTarget(name="other")
FIO = {"job": "[w]\nrw=write\nbs=16k\nsize=16m\ndirect=1\nrate_iops=100\n"}


def resume(directory: Path) -> None:
    """Execute a run again whose worker was killed."""
    for state in (RunState.INTERRUPTED, RunState.STARTING):
        change_state(EventLog(directory), state, time.time())
    assert execute_run(directory).state is RunState.FINISHED


def test_the_windows_of_both_are_one_and_each_is_beside_it(tmp_path: Path) -> None:
    # What an engine that comes late misses is a gap of its share, in the warm-up.
    phases = {"warm_up": "5s", "soak": "5s"}
    directory = queue_run(tmp_path / "both", target=ONE, more_targets=(OTHER,), window="500ms", phases=phases)
    finished = execute_run(directory)
    assert (finished.state, finished.verdict) == (RunState.FINISHED, VerdictName.PASS), finished.reasons
    windows = [window for window in JournalReader(directory).windows() if window.phase == "soak"]
    assert [round(window.end - window.start, 6) for window in windows] == [0.5] * 10
    for window in windows:
        assert window.counters["operations"] == 1000
        assert {f"{part}/publish" for part in ("part-1", "part-2")} < set(window.latency)
        assert JournalReader(directory).histograms(window)["part-1/publish"].count == 500
    for part in ("part-1", "part-2"):
        own = [window for window in JournalReader(directory / files.PARTS / part).windows() if window.phase == "soak"]
        assert [window.counters["operations"] for window in own] == [500] * 10
    started = [event.detail["part"] for event in events(directory) if (event.type, event.name) == ("engine", "started")]
    assert sorted(started) == ["part-1", "part-2"]
    facts = json.loads((directory / files.FACTS).read_text())
    assert list(facts["parts"]) == ["part-1", "part-2"]
    document = report(directory)
    assert document["run"]["target"] == "synthetic:one + synthetic:other"
    assert set(document["latency"]) >= {"publish", "part-1/publish", "part-2/publish"}


def test_both_pass_in_virtual_time(tmp_path: Path) -> None:
    directory = queue_run(
        tmp_path / "virtual",
        {"time": "virtual", "cliff_after": "2h"},
        ONE,
        more_targets=(OTHER,),
        window="60s",
        phases={"warm_up": "10m", "soak": "6h"},
    )
    finished = execute_run(directory)
    assert finished.verdict is VerdictName.DEGRADED
    assert window_count(directory) == 370
    assert report(directory)["coverage"]["ratio"] == 1.0
    # It is one cliff, however many series show it.
    assert len([finding for finding in report(directory)["findings"] if finding["kind"] == "cliff"]) == 1


def test_a_worker_that_is_killed_is_followed_by_one_that_goes_on_with_both(tmp_path: Path) -> None:
    directory = queue_run(
        tmp_path / "killed", target=ONE, more_targets=(OTHER,), window="500ms", phases={"soak": "15s"}
    )
    worker = start_worker(directory)
    wait_until(lambda: window_count(directory) >= 4, "a few windows")
    heartbeat = Heartbeat.read(directory)
    assert heartbeat is not None
    assert (len(heartbeat.parts), len(heartbeat.engines)) == (2, 2)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    for process in (*heartbeat.parts, *heartbeat.engines):
        assert process.wait_gone(10)
    last_of_parts = [JournalReader(directory / files.PARTS / part).last_window() for part in ("part-1", "part-2")]
    reached = min(window.end for window in last_of_parts if window is not None)
    resume(directory)
    assert_no_window_twice(directory)
    # What both had measured was merged by the second worker, if not by the first.
    (gap,) = [event for event in events(directory) if (event.type, event.name) == ("gap", "worker_interrupted")]
    assert gap.detail["start"] >= reached - 1e-6


def test_windows_of_a_part_that_waited_are_merged_by_the_next_worker(tmp_path: Path) -> None:
    directory = queue_run(
        tmp_path / "killed", target=ONE, more_targets=(OTHER,), window="500ms", phases={"soak": "12s"}
    )
    worker = start_worker(directory)
    wait_until(lambda: window_count(directory) >= 2, "a few windows")
    heartbeat = Heartbeat.read(directory)
    assert heartbeat is not None
    other = heartbeat.parts[1]
    other.send(signal.SIGSTOP)

    def waiting() -> list[JournalWindow]:
        last = JournalReader(directory).last_window()
        assert last is not None
        own = JournalReader(directory / files.PARTS / "part-1").windows()
        return [window for window in own if window.start >= last.end - 1e-6]

    wait_until(lambda: len(waiting()) >= 2, "windows that wait for those of the other part")
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    left = waiting()
    assert left
    assert other.wait_gone(10)
    resume(directory)
    assert_no_window_twice(directory)
    of_first = {window.start: window.counters.get("part-1/operations") for window in JournalReader(directory).windows()}
    assert {window.start: of_first.get(window.start) for window in left} == {window.start: 500 for window in left}


def test_a_drive_that_stalls_is_seen_in_its_own_part(tmp_path: Path) -> None:
    with (
        loop_drive(tmp_path / "one", 256 * MIB) as first,
        loop_drive(tmp_path / "two", 256 * MIB) as second,
    ):
        for drive in (first, second):
            command("mkfs.ext4", "-q", drive.node)
        with mounted(first.node, tmp_path / "first") as well, mounted(second.node, tmp_path / "second") as stalls:
            targets = [DirectoryTarget(path=str(place)) for place in (well, stalls)]
            directory = queue_run(
                tmp_path / "run",
                FIO,
                targets[0],
                more_targets=(targets[1],),
                engine="fio",
                window="1s",
                phases={"soak": "20s"},
            )
            worker = start_worker(directory)
            wait_until(lambda: window_count(directory) >= 4, "a few windows")
            command("fsfreeze", "--freeze", stalls)
            begun = time.monotonic()
            try:
                wait_until(lambda: time.monotonic() - begun >= 4.0, "the end of the stall")
            finally:
                command("fsfreeze", "--unfreeze", stalls)
            assert worker.wait(90) == 0
            assert list(well.glob("cliffwatch-*")) == list(stalls.glob("cliffwatch-*")) == []
    windows = list(JournalReader(directory).windows())
    longest = {
        part: max(
            window.latency[f"{part}/write"]["max"] or 0.0 for window in windows if f"{part}/write" in window.latency
        )
        for part in ("part-1", "part-2")
    }
    assert longest["part-2"] >= 3.0 > longest["part-1"]
    numbers = {
        name.partition(".")[0] for window in windows for name in window.counters if name.endswith(".write_operations")
    }
    assert len(numbers) == 2
    facts = json.loads((directory / files.FACTS).read_text())
    assert [drive["part"] for drive in facts["drives"]] == ["part-1", "part-2"]
    assert {f"{drive['part']}/{drive['major_minor']}" for drive in facts["drives"]} == numbers
    assert_no_window_twice(directory)


def test_one_that_is_not_there_fails_the_run_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    here, missing = (DirectoryTarget(path=str(tmp_path / name)) for name in ("here", "missing"))
    directory = queue_run(tmp_path / "run", FIO, here, more_targets=(missing,), engine="fio", phases={"soak": "1h"})
    finished = execute_run(directory)
    assert finished.verdict is VerdictName.FAILED
    assert "part-2: " in finished.reasons[0]
    assert "missing" in finished.reasons[0]
    assert list((tmp_path / "here").iterdir()) == []
    assert "started" not in names(directory, "engine")


@pytest.mark.parametrize("force", [False, True])
def test_a_stop_ends_both(tmp_path: Path, force: bool) -> None:
    directory = queue_run(tmp_path / "stopped", target=ONE, more_targets=(OTHER,), phases={"soak": "1h"})
    worker = start_worker(directory)
    wait_until(lambda: window_count(directory) >= 2, "a second window")
    heartbeat = Heartbeat.read(directory)
    assert heartbeat is not None
    request_stop(directory, force=force)
    worker.wait(60)
    for process in (*heartbeat.parts, *heartbeat.engines):
        assert process.wait_gone(10)
    if not force:
        assert status(directory).verdict is VerdictName.STOPPED
