"""A worker that is frozen in the middle of an append keeps neither the service nor a stop waiting."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.waiting import wait_until
from testkit.worker_runs import names, status

from cliffwatch.app.launcher import request_stop
from cliffwatch.base.errors import Code, Problem
from cliffwatch.journal import Event, EventLog, EventType, events, files
from cliffwatch.journal.state import change_state
from cliffwatch.model.run_state import RunState

FROZEN = """
import fcntl, os, signal, sys
from pathlib import Path
from cliffwatch.coordinator.heartbeat import Heartbeat
Heartbeat.of_this_process().write(Path(sys.argv[1]))
descriptor = os.open(Path(sys.argv[1]) / "events.jsonl", os.O_RDWR)
fcntl.flock(descriptor, fcntl.LOCK_EX)
os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The journal of a run whose worker was frozen while it held the lock of the events."""
    for state in (RunState.QUEUED, RunState.STARTING, RunState.RUNNING):
        change_state(EventLog(tmp_path), state, 0.0, {"load_start": 0.0, "load_stop": 60.0})
    monkeypatch.setattr(events, "LOCK_WAIT_SECONDS", 0.2)
    with subprocess.Popen([sys.executable, "-c", FROZEN, str(tmp_path)]) as worker:
        stat = Path("/proc") / str(worker.pid) / "stat"
        wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "a frozen worker")
        yield tmp_path
        worker.kill()


def test_an_append_does_not_wait_for_ever(directory: Path) -> None:
    with pytest.raises(TimeoutError, match=files.EVENTS):
        EventLog(directory).append(Event(1.0, EventType.NOTE, "note"))


def test_a_stop_says_that_the_worker_is_frozen(directory: Path) -> None:
    with pytest.raises(Problem, match="--force") as refusal:
        request_stop(directory, force=False)
    assert refusal.value.code is Code.NOT_READY
    assert status(directory).state is RunState.RUNNING


def test_a_stop_by_force_kills_it_and_stands_in_the_journal(directory: Path) -> None:
    request_stop(directory, force=True)
    assert status(directory).state is RunState.STOPPING
    assert "worker_killed" in names(directory, "note")
