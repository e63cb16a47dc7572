"""A service with its workers and journals on a simulated machine, and the supervisor that starts the service again."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from sqlalchemy import Connection, event
from sqlalchemy.exc import OperationalError
from testkit import journals
from testkit.power import Disk
from tests.simulation.promises import Promises
from tests.simulation.system import simulated
from tests.simulation.world import Process, World

from cliffwatch.app.admission import RunTurns
from cliffwatch.app.indexer import Indexer
from cliffwatch.app.reconciler import PERIOD_SECONDS, Reconciler
from cliffwatch.app.runs import RunService
from cliffwatch.base.clock import SystemClock
from cliffwatch.base.errors import Problem
from cliffwatch.journal import JournalReader
from cliffwatch.journal.conclusion import Conclusion
from cliffwatch.model.request import RunRequest
from cliffwatch.model.run_state import Verdict, VerdictName
from cliffwatch.model.settings import read_settings
from cliffwatch.report.process import ReportOutcome
from cliffwatch.store import database as store
from cliffwatch.store.database import PATIENCE_SECONDS, Database, open_database, upgrade

#: What the user asks for: two runs that take turns on one target.
RUNS = ("first", "second")
WORKLOAD: dict[str, Any] = {"window": "1s", "phases": {"soak": "10s", "cool_down": "0s"}, "engine_restarts": 3}
RESTART_SECONDS = 2.0
#: How a transaction begins, and options of one, as `store.database` names them.
BEGIN = store._begin_sqlite
READ_ONLY, PATIENCE = "cliffwatch_read_only", "cliffwatch_patience_seconds"
#: Calls that a disk refuses which is full, and one that fails.
GROWING = frozenset({"write", "mkdir", "rename", "replace"})
CHANGING = GROWING | {"fsync", "fdatasync", "ftruncate", "unlink", "rmdir"}


class Machine:
    """`disk_error` is what the journals' disk answers at the moment, None while it works."""

    def __init__(self, seed: int, place: Path) -> None:
        self.world = World(seed)
        self.place = place
        self.runs = place / "state" / "runs"
        self.promises = Promises(self.runs)
        self.accepted: set[str] = set()
        self.disk_error: int | None = None
        self.is_database_away = False
        #: Whether power is to be cut before anything else happens.
        self.power_fails = False
        self.service: Process | None = None
        self.service_runs: RunService | None = None
        self._restart_at = self.world.now
        self._patches = ExitStack()
        self._cuts = 0
        self._writer: Connection | None = None
        self.runs.mkdir(parents=True)
        self._settings = read_settings(state_directory=place / "state")

    @contextmanager
    def on(self, database_template: Path) -> Iterator["Machine"]:
        shutil.copy(database_template, self.place / "state" / "database")
        self._patch()
        try:
            yield self
        finally:
            self.world.close()
            self._patches.close()

    def supervise(self) -> None:
        """Start the service when it is gone; a while later, as systemd does."""
        if self.service is not None and self.service.is_alive:
            self._restart_at = self.world.now + RESTART_SECONDS
        elif self.world.now >= self._restart_at:
            self.service = self.world.spawn("service", self._serve)

    def cut_power(self) -> None:
        """Everything ends, and the disk is found in a state in which that may leave it."""
        self.world.note("power is cut")
        for process in self.world.processes:
            self.world.end(process, -9)
        self._cuts += 1
        image = self._disk.image(self.place / f"image-{self._cuts}")
        self._patches.close()
        self.runs.rename(self.place / f"before-{self._cuts}")
        image.rename(self.runs)
        self.world.boot += 1
        self.disk_error, self.power_fails = None, False
        self._patch()
        self._restart_at = self.world.now + RESTART_SECONDS

    def ask_to_stop(self, run_id: str, force: bool) -> None:
        """A client asks the service for it, which may have to refuse."""
        service, runs = self.service, self.service_runs
        if service is None or not service.is_alive or runs is None:
            return

        def ask() -> None:
            try:
                runs.stop(run_id, force)
            except (Problem, OSError, OperationalError) as error:
                self.world.note(f"stop of {run_id} refused: {error}")

        self.world.note(f"{run_id} is asked to stop{' by force' if force else ''}")
        self.world.thread(service, ask)

    def refuse(self, name: str) -> None:
        """Raises OSError where the disk does not do what it is asked for."""
        if (self.disk_error == errno.ENOSPC and name in GROWING) or (self.disk_error == errno.EIO and name in CHANGING):
            raise OSError(self.disk_error, os.strerror(self.disk_error))

    def _patch(self) -> None:
        self._disk = Disk(self.runs, self.world.random, lambda disk: None)
        self._patches = ExitStack()
        self._patches.enter_context(self._disk.watched())
        self._patches.enter_context(mock.patch.object(store, "_begin_sqlite", self._begin))
        self._patches.enter_context(simulated(self.world, self._report))
        self._patches.enter_context(self.promises.recorded(self.world))

    def _report(self, directory: Path) -> ReportOutcome:
        """Says no more than how many windows there were."""
        self.world.call("report")
        count = len(list(JournalReader(directory).windows()))
        return ReportOutcome(Conclusion(Verdict(VerdictName.PASS, (f"{count} windows",))))

    def _serve(self) -> int:
        service = self.world.current()
        assert service is not None
        database = self._open_database(service)
        self.service_runs = None
        clock = SystemClock()
        while True:
            try:
                Indexer(database, self.runs, RunTurns(), clock).index_first()
                break
            except OperationalError:
                self.world.sleep(PERIOD_SECONDS)
        runs = self.service_runs = RunService(self._settings, database, clock)
        self.world.thread(service, lambda: self._submit(runs))
        reconciler = Reconciler(database, clock)
        while True:
            try:
                reconciler.tick()
            except Exception as error:  # as `Rounds` does
                self.world.note(f"a round failed: {error!r}")
            self.world.sleep(PERIOD_SECONDS)

    def _submit(self, runs: RunService) -> None:
        """Asked for again until each is accepted."""
        order: dict[str, Any] = {
            "workload": journals.synthetic_workload(**WORKLOAD).model_dump(mode="json"),
            "target": {"kind": "synthetic", "name": "drive"},
        }
        for run_id in RUNS:
            while run_id not in self.accepted:
                try:
                    runs.submit(RunRequest.model_validate(order), "user", run_id)
                    self.accepted.add(run_id)
                    self.world.note(f"{run_id} is accepted")
                except (Problem, OSError, OperationalError) as error:
                    self.world.note(f"{run_id} is refused: {error}")
                    self.world.sleep(PERIOD_SECONDS)

    def _open_database(self, service: Process) -> Database:
        """One in which a dead service holds nothing."""
        database = open_database(f"sqlite:///{self.place}/state/database")
        for ending in ("commit", "rollback"):
            event.listen(database.engine, ending, self._let_others_write)
        event.listen(database.engine, "checkout", lambda connection, *_: service.at_death.append(connection.rollback))
        service.at_death.append(lambda: setattr(self, "_writer", None))
        return database

    def _begin(self, connection: Connection) -> None:
        """Wait for a writer by this world's clock: SQLite itself would wait by the real one."""
        if self.world.current() is None:
            return BEGIN(connection)
        self.world.call("begin")
        options = connection.get_execution_options()
        is_writer = not options.get(READ_ONLY)
        deadline = self.world.now + options.get(PATIENCE, PATIENCE_SECONDS)
        while is_writer and self._writer is not None and self.world.now < deadline:
            self.world.sleep(0.01)
        if self.is_database_away or (is_writer and self._writer is not None):
            raise OperationalError("begin", {}, Exception("the database is away"))
        BEGIN(connection)
        if is_writer:
            self._writer = connection
        return None

    def _let_others_write(self, connection: Connection) -> None:
        if self._writer is connection:
            self._writer = None


def database_template(place: Path) -> Path:
    """A database with its tables."""
    path = place / "database"
    upgrade(f"sqlite:///{path}")
    return path
