"""The machine on which the service looks after its runs."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.app.machine import Machine, ShiftedClock

from cliffwatch.app.launcher import request_stop
from cliffwatch.app.reconciler import Reconciler
from cliffwatch.app.runs import RunService
from cliffwatch.base.clock import SystemClock
from cliffwatch.model.settings import read_settings
from cliffwatch.store.database import open_database, upgrade
from cliffwatch.worker.heartbeat import Heartbeat


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
        for worker in reconciler._workers.values():
            worker.wait(60)
    database.close()
