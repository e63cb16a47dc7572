"""A part that dies, or answers no more: its run goes on, or ends without it."""

import signal
import time
from pathlib import Path

from testkit.waiting import wait_until
from testkit.worker_runs import (
    assert_no_window_twice,
    events,
    execute_run,
    names,
    queue_run,
    start_worker,
    status,
    window_count,
)

from cliffwatch.app.launcher import request_stop
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.journal import EventLog
from cliffwatch.journal.state import change_state
from cliffwatch.model.run_state import RunState, VerdictName


def heartbeat_of(directory: Path) -> Heartbeat:
    wait_until(lambda: window_count(directory) >= 2, "a second window")
    heartbeat = Heartbeat.read(directory)
    assert heartbeat is not None
    return heartbeat


def test_a_part_that_is_killed_takes_its_engine_along_and_another_worker_goes_on(tmp_path: Path) -> None:
    directory = queue_run(tmp_path / "killed", phases={"soak": "15s"})
    worker = start_worker(directory)
    heartbeat = heartbeat_of(directory)
    assert heartbeat.engine is not None
    assert heartbeat.parts[0].send(signal.SIGKILL)
    assert worker.wait(30) == 1
    assert heartbeat.engine.wait_gone(5)
    assert status(directory).state is RunState.RUNNING
    for state in (RunState.INTERRUPTED, RunState.STARTING):
        change_state(EventLog(directory), state, time.time())
    finished = execute_run(directory)
    assert (finished.state, finished.load_stop) == (RunState.FINISHED, (finished.load_start or 0) + 15)
    assert names(directory, "gap") == ["worker_interrupted"]
    assert_no_window_twice(directory)


def test_a_part_that_answers_no_more_is_killed_after_a_stop_and_the_run_ends_without_it(tmp_path: Path) -> None:
    directory = queue_run(tmp_path / "frozen", phases={"soak": "1h"}, stop_grace="1s")
    worker = start_worker(directory)
    heartbeat = heartbeat_of(directory)
    assert heartbeat.engine is not None
    heartbeat.parts[0].send(signal.SIGSTOP)
    request_stop(directory, force=False)
    assert worker.wait(90) == 0
    assert status(directory).verdict is VerdictName.STOPPED
    assert not heartbeat.parts[0].is_alive()
    assert not heartbeat.engine.is_alive()
    assert [event.name for event in events(directory) if event.type == "state"][-2:] == ["reporting", "finished"]


def test_a_worker_that_is_killed_takes_its_part_and_its_engine_along(tmp_path: Path) -> None:
    directory = queue_run(tmp_path / "alone", phases={"soak": "1h"})
    worker = start_worker(directory)
    heartbeat = heartbeat_of(directory)
    worker.kill()
    worker.wait()
    for process in (heartbeat.parts[0], heartbeat.engine):
        assert process is not None
        assert process.wait_gone(10)
