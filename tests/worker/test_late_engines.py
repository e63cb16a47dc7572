"""An engine that is slow to begin costs a run time, and nothing else: the load begins when it is there."""

import signal
import time
from pathlib import Path
from typing import Any

import pytest
from testkit.slow_programs import path_with_slow
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
    undisturbed,
    window_count,
)

from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.journal import EventLog, JournalReader
from cliffwatch.journal.state import change_state
from cliffwatch.model.run_state import RunState
from cliffwatch.model.target import AnyTarget, DirectoryTarget, SyntheticTarget

FIO = {"job": "[w]\nrw=write\nbs=16k\nsize=16m\ndirect=1\nrate_iops=100\n"}
#: Each engine's load, and what on PATH starts it late: `fio` in its own start-up, whichever by the one that execs it.
CASES: list[tuple[str, dict[str, Any], str]] = [
    ("fio", FIO, "fio"),
    ("fio", FIO, "setpriv"),
    ("synthetic", {}, "setpriv"),
    ("storage", SMALL, "setpriv"),
]
SOAK_SECONDS, RESUMED_SECONDS = 6, 15
#: More than a window of a second and not a whole number of them; a run is planned half a second ahead.
LATE_SECONDS = 2.4


@pytest.fixture
def slow_programs(tmp_path: Path) -> dict[str, str]:
    """For each program the PATH on which it takes so long to begin a load."""
    paths = {}
    for program in ("fio", "setpriv"):
        directory = tmp_path / f"slow-{program}"
        directory.mkdir()
        paths[program] = path_with_slow(program, LATE_SECONDS, directory)
    return paths


def queue(tmp_path: Path, engine: str, load: dict[str, Any], name: str, seconds: int = SOAK_SECONDS) -> Path:
    place = tmp_path / f"target-{name}"
    place.mkdir()
    target: AnyTarget = SyntheticTarget(name="x") if engine == "synthetic" else DirectoryTarget(path=str(place))
    phases = {"soak": f"{seconds}s", "cool_down": "0s"}
    return queue_run(tmp_path / name, load, target, engine=engine, window="1s", phases=phases)


def test_a_load_begins_when_its_engine_is_there_and_lasts_as_long(
    tmp_path: Path, slow_programs: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All at once, since most of it is waiting."""

    def attempt(number: int) -> list[Path]:
        runs = []
        for engine, load, program in CASES:
            monkeypatch.setenv("PATH", slow_programs[program])
            journal = queue(tmp_path, engine, load, f"{engine}-{program}-{number}")
            runs.append((journal, start_worker(journal)))
        assert [worker.wait(90) for _, worker in runs] == [0] * len(runs)
        return [journal for journal, _ in runs]

    for journal in undisturbed(attempt):
        check_whole(journal)


def check_whole(journal: Path) -> None:
    began, windows = status(journal), list(JournalReader(journal).windows())
    (running,) = [event for event in events(journal) if event.name == "running"]
    assert began.load_start is not None
    assert began.load_stop is not None
    assert began.load_start - running.detail["load_start"] >= 1.0, journal.name
    assert began.load_stop - began.load_start == SOAK_SECONDS
    assert (windows[0].start, windows[-1].end) == (began.load_start, began.load_stop), journal.name
    assert names(journal, "gap") == []
    assert "load_moved" in names(journal, "note")
    document = report(journal)
    assert document["coverage"]["asked_seconds"] == SOAK_SECONDS
    assert document["coverage"]["judged_ratio"] >= 0.99, journal.name
    (soak,) = [phase for phase in document["phases"] if phase["name"] == "soak"]
    assert (soak["start_seconds"], soak["end_seconds"], soak["windows"]) == (0, SOAK_SECONDS, len(windows))
    assert not any("was measured" in reason for reason in began.reasons), began.reasons


@pytest.mark.real(why="test_worker.py has what goes on with a run, in time")
def test_an_engine_that_goes_on_with_a_load_late_leaves_a_gap_and_ends_when_that_was_to(
    tmp_path: Path, slow_programs: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", slow_programs["fio"])
    journal = queue(tmp_path, "fio", FIO, "killed", RESUMED_SECONDS)
    worker = start_worker(journal)
    wait_until(lambda: window_count(journal) >= 2, "a second window")
    heartbeat = Heartbeat.read(journal)
    assert heartbeat is not None
    heartbeat.worker.send(signal.SIGKILL)
    assert worker.wait(60) == -signal.SIGKILL
    began = status(journal)
    change_state(EventLog(journal), RunState.INTERRUPTED, began.since)
    change_state(EventLog(journal), RunState.STARTING, began.since)
    assert start_worker(journal).wait(90) == 0
    assert_no_window_twice(journal)
    finished = status(journal)
    assert (finished.load_start, finished.load_stop) == (began.load_start, began.load_stop)
    assert finished.load_stop is not None
    assert max(window.end for window in JournalReader(journal).windows()) <= finished.load_stop
    assert names(journal, "note").count("load_moved") == 1
    (gap,) = [event for event in events(journal) if event.type == "gap"]
    assert gap.name == "worker_interrupted"
    coverage = report(journal)["coverage"]
    assert coverage["judged_ratio"] < 0.99
    assert coverage["asked_seconds"] == RESUMED_SECONDS


def test_a_worker_that_comes_back_when_the_load_is_over_says_from_when_nothing_was_measured(tmp_path: Path) -> None:
    journal = queue(tmp_path, "synthetic", {}, "away", SOAK_SECONDS)
    worker = start_worker(journal)
    wait_until(lambda: window_count(journal) >= 1, "a first window")
    worker.kill()
    worker.wait(60)
    began = status(journal)
    assert began.load_stop is not None
    change_state(EventLog(journal), RunState.INTERRUPTED, began.since)
    change_state(EventLog(journal), RunState.STARTING, began.since)
    over = began.load_stop
    wait_until(lambda: time.time() > over, "the end of the load")
    assert start_worker(journal).wait(60) == 0
    (gap,) = [event for event in events(journal) if event.type == "gap"]
    last = max(window.end for window in JournalReader(journal).windows())
    assert (gap.name, gap.detail["start"], gap.detail["end"]) == ("worker_interrupted", last, over)
    assert [each["reason"] for each in report(journal)["coverage"]["gaps"]] == ["worker_interrupted"]
