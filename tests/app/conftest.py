"""The machine on which the service looks after its runs, and a scheduler that tests wake up."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.app.machine import Machine, ShiftedClock
from tests.app.scheduling import GRACE, NOW, Desk

from cliffwatch.app.launcher import request_stop
from cliffwatch.app.reconciler import Reconciler
from cliffwatch.app.runs import RunService
from cliffwatch.app.scheduler import Scheduler
from cliffwatch.app.scheduler_lock import SchedulerLock
from cliffwatch.base.clock import SystemClock, VirtualClock
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.model.settings import read_settings
from cliffwatch.store.database import Database, open_database, upgrade


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    url = f"sqlite:///{tmp_path / 'state.sqlite3'}"
    upgrade(url)
    database = open_database(url)
    service = RunService(read_settings(state_directory=tmp_path), database, SystemClock(), request_stop)
    service.sweep()
    clock = ShiftedClock()
    made = Machine(tmp_path / "runs", database, service, Reconciler(database, clock), clock)
    yield made
    for directory in made.runs_directory.iterdir():
        heartbeat = Heartbeat.read(directory)
        if heartbeat is not None:
            heartbeat.worker.send(signal.SIGKILL)
    for reconciler in (*made.past, made.reconciler):
        for worker in (*reconciler._workers.values(), *reconciler._replaced):
            # One that was started last may not have come to its heartbeat.
            worker.kill()
            worker.wait(60)
    database.close()


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOW)


@pytest.fixture
def lock(database: Database, tmp_path: Path) -> Iterator[SchedulerLock]:
    lock = SchedulerLock(tmp_path / "scheduler.lock", database.engine, SystemClock(), patience_seconds=0)
    lock.acquire()
    yield lock
    lock.release()


@pytest.fixture
def scheduler(database: Database, clock: VirtualClock, lock: SchedulerLock, desk: Desk) -> Scheduler:
    """Not started: the tests say when it wakes up."""
    return Scheduler(database, clock, lock, GRACE, desk.submit)
