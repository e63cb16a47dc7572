"""What became of runs whose journal lost a file, or has something else in its place."""

import os

import pytest
from testkit.worker_runs import names, status
from tests.app.machine import Machine, left_alone

from cliffwatch.app.launcher import worker_is_alive
from cliffwatch.journal import files
from cliffwatch.model.run_state import RunState


@pytest.mark.parametrize("place", ["directory", "fifo", "nothing"])
def test_a_run_whose_events_are_no_file_any_more_is_ended(machine: Machine, place: str) -> None:
    directory, _ = left_alone(machine, "erased", "1h")
    events = directory / files.EVENTS
    events.unlink()
    if place == "directory":
        (events / "kept").mkdir(parents=True)
    elif place == "fifo":
        os.mkfifo(events)
    machine.reconciler.tick()
    assert status(directory).state is RunState.FINISHED
    assert machine.indexed_state("erased") == "finished"
    # What had their place is still there.
    assert len(list(directory.glob("events.jsonl.moved-aside-*"))) == (place != "nothing")


def test_a_finished_run_whose_windows_cannot_be_read_is_finished_in_the_index_too(machine: Machine) -> None:
    directory = machine.submit("short", soak="300ms")
    machine.tick_until(directory, RunState.REPORTING)
    (directory / files.WINDOWS).rename(directory / "elsewhere")
    (directory / files.WINDOWS).mkdir()
    machine.tick_until(directory, RunState.FINISHED)
    machine.reconciler.tick()
    assert machine.indexed_state("short") == "finished"


def test_a_worker_lives_whose_lock_was_removed(machine: Machine) -> None:
    directory = machine.submit("unlocked")
    machine.tick_until(directory, RunState.RUNNING)
    (directory / files.WORKER_LOCK).unlink()
    machine.restart()
    machine.reconciler.tick()
    assert worker_is_alive(directory)
    assert status(directory).state is RunState.RUNNING
    assert not [name for name in names(directory, "state") if name == RunState.INTERRUPTED.value]
