"""The journal of a run disappears while the run goes on: the run ends, and its target is free."""

import random
import shutil
from pathlib import Path

import pytest
from testkit.waiting import wait_until
from testkit.worker_runs import names, status
from tests.app.machine import Machine, left_alone

from cliffwatch.app.launcher import has_worker
from cliffwatch.app.lost_journals import GONE_SECONDS
from cliffwatch.model.run_state import RunState
from cliffwatch.store.models import RunRow


def row_of(machine: Machine, run_id: str) -> RunRow:
    with machine.database.snapshot() as session:
        return session.get_one(RunRow, run_id)


def tick_for(machine: Machine, seconds: float) -> None:
    for _ in range(2):
        machine.reconciler.tick()
        machine.clock.passed_seconds += seconds / 2
    machine.reconciler.tick()


@pytest.mark.gate(why="smoke of a journal that is gone")
def test_a_run_without_its_journal_fails_and_frees_its_target(machine: Machine) -> None:
    directory, _ = left_alone(machine, "vanished", "1h")
    behind = machine.submit("behind", soak="500ms")
    shutil.rmtree(directory)
    machine.reconciler.tick()
    assert (machine.indexed_state("vanished"), status(behind).state) == ("running", RunState.QUEUED)
    tick_for(machine, GONE_SECONDS)
    row = row_of(machine, "vanished")
    assert (row.state, row.verdict) == ("finished", "failed")
    assert row.reasons[0].startswith(f"The journal {directory} is gone")
    machine.tick_until(behind, RunState.FINISHED)


def test_a_restarted_service_ends_it_too_and_a_queued_run_as_well(machine: Machine) -> None:
    directory, _ = left_alone(machine, "vanished", "1h")
    shutil.rmtree(machine.submit("queued"))
    shutil.rmtree(directory)
    machine.restart()
    tick_for(machine, GONE_SECONDS)
    assert [row_of(machine, run_id).verdict for run_id in ("vanished", "queued")] == ["failed", "failed"]
    # The request that made it may be repeated: no worker began with it.
    machine.tick_until(machine.submit("queued", soak="500ms"), RunState.FINISHED)


def test_a_run_whose_worker_lives_is_not_ended(machine: Machine) -> None:
    directory = machine.submit("moved")
    machine.tick_until(directory, RunState.RUNNING)
    away = directory.rename(directory.with_name(".away"))
    machine.restart()
    tick_for(machine, GONE_SECONDS * 2)
    assert has_worker(directory)
    assert machine.indexed_state("moved") == "running"
    away.rename(directory)
    machine.service.stop("moved", force=False)
    machine.tick_until(directory, RunState.FINISHED)


def test_a_journal_that_is_back_counts_again_once_its_target_is_free(machine: Machine, tmp_path: Path) -> None:
    directory, _ = left_alone(machine, "returns", "3s")
    away = directory.rename(tmp_path / "away")
    behind = machine.submit("behind")
    tick_for(machine, GONE_SECONDS)
    assert machine.indexed_state("returns") == "finished"
    machine.tick_until(behind, RunState.RUNNING)
    away.rename(directory)
    for _ in range(3):
        machine.reconciler.tick()
    assert status(directory).state is RunState.INTERRUPTED
    assert machine.indexed_state("returns") == "interrupted"
    machine.service.stop("behind", force=False)
    machine.tick_until(behind, RunState.FINISHED)
    machine.tick_until(directory, RunState.FINISHED)
    assert "worker_interrupted" in names(directory, "gap")
    assert not row_of(machine, "returns").reasons[0].startswith("The journal")


def test_the_worker_of_a_journal_that_was_removed_ends_and_then_its_run(machine: Machine) -> None:
    directory = machine.submit("removed")
    machine.tick_until(directory, RunState.RUNNING)
    shutil.rmtree(directory.rename(directory.with_name(".removed")))
    wait_until(lambda: not has_worker(directory), "the worker's end")
    tick_for(machine, GONE_SECONDS)
    assert row_of(machine, "removed").verdict == "failed"


@pytest.mark.parametrize("seed", range(12))
def test_however_a_journal_is_lost_its_target_is_free_within_a_minute(machine: Machine, seed: int) -> None:
    chance = random.Random(seed)
    if chance.random() < 0.3:
        directory = machine.submit("vanished")
    else:
        directory, _ = left_alone(machine, "vanished", "1h")
    behind = machine.submit("behind", soak="500ms")
    for path in chance.sample(sorted(directory.iterdir()), chance.randrange(4)):
        path.unlink() if path.is_file() else shutil.rmtree(path)
    for step in chance.sample(["restart", "tick", "remove"], 3):
        if step == "restart":
            machine.restart()
        elif step == "tick":
            machine.reconciler.tick()
        else:
            shutil.rmtree(directory)
    passed = 0.0
    while passed < 60.0:
        machine.reconciler.tick()
        machine.clock.passed_seconds += (pause := chance.uniform(0.5, 10.0))
        passed += pause
    machine.tick_until(behind, RunState.FINISHED)
    assert row_of(machine, "vanished").state == "finished"
