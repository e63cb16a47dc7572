"""The runs that are kept: annotate one, delete one, and delete what is older than the retention.

A journal is deleted in one step, by a rename; what a service that was killed had begun to delete is removed at the next
start. Only finished runs are deleted, and none that is pinned.
"""

import logging
import secrets
import shutil
from pathlib import Path

from sqlalchemy import func, select

from cliffwatch.app import launcher
from cliffwatch.app.admission import RunTurns
from cliffwatch.app.hung_runs import hung_processes
from cliffwatch.app.index import UNFINISHED_PREFIX, index_run, status_in
from cliffwatch.base import durable
from cliffwatch.base.clock import Clock
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.rounds import Rounds
from cliffwatch.base.units import format_duration
from cliffwatch.journal import Event, EventLog, JournalReader, files
from cliffwatch.journal.annotated import annotated, annotations_in
from cliffwatch.model.annotations import AnnotationsChange
from cliffwatch.model.run_state import RunState
from cliffwatch.model.settings import Settings
from cliffwatch.store.database import Database
from cliffwatch.store.models import RunRow
from cliffwatch.store.queries import require_run

_LOG = logging.getLogger(__name__)
_DELETED_PREFIX = f"{UNFINISHED_PREFIX}deleted-"
#: The retention is counted in hours and days.
_PERIOD_SECONDS = 600.0


class RunLibrary:
    """Finished runs, as far as they are changed or deleted."""

    def __init__(self, settings: Settings, database: Database, clock: Clock, turns: RunTurns) -> None:
        self._runs_directory = settings.runs_directory
        self._retention_seconds = settings.retention
        self._database = database
        self._clock = clock
        self._turns = turns
        self._rounds = Rounds("retention", _PERIOD_SECONDS, self.expire, "old runs could not be deleted")

    def start(self) -> None:
        """Remove what is left of deleted runs, and delete those that become too old from now on."""
        for path in self._runs_directory.glob(f"{_DELETED_PREFIX}*"):
            shutil.rmtree(path, ignore_errors=True)
        if self._retention_seconds is not None:
            self._rounds.start()

    def stop(self) -> None:
        self._rounds.stop()

    def annotate(self, run_id: str, change: AnnotationsChange, by: str) -> RunRow:
        """Change a run's annotations: its row as it is then. Raises Problem: bad_request, journal_unreadable."""
        with self._database.snapshot() as session:
            directory = Path(require_run(session, run_id).directory)

        def decide(events: list[Event]) -> list[Event]:
            before = annotations_in(events)
            after = change.applied_to(before)
            return [] if after == before else [annotated(after, by, self._clock.wall())]

        if not (directory / files.EVENTS).exists():
            raise Problem(Code.JOURNAL_UNREADABLE, f"{directory / files.EVENTS} is not there")
        EventLog(directory).append_all(decide)
        with self._database.session() as session:
            return index_run(session, directory)

    def delete(self, run_id: str) -> None:
        """Delete a run: its journal, its reports and its telemetry.

        Raises Problem: wrong_state for one that is not over, conflict for one that is pinned.
        """
        with self._turns.of(run_id):
            with self._database.snapshot() as session:
                directory = Path(require_run(session, run_id).directory)
            aside = self._runs_directory / f"{_DELETED_PREFIX}{run_id}-{secrets.token_hex(4)}"
            # A journal that is not there was deleted by a service that was killed before its row was.
            if directory.exists():
                _require_deletable(run_id, directory)
                directory.rename(aside)
                durable.sync_directory(directory.parent)
            with self._database.session() as session:
                row = session.get(RunRow, run_id)
                if row is not None:
                    session.delete(row)
            shutil.rmtree(aside, ignore_errors=True)

    def expire(self) -> None:
        """Delete runs that have been over, or here, for longer than the retention."""
        if self._retention_seconds is None:
            return
        here_since = func.coalesce(RunRow.imported_at, RunRow.finished_at)
        is_old = here_since < self._clock.wall() - self._retention_seconds
        with self._database.snapshot() as session:
            old = list(session.scalars(select(RunRow.id).where(is_old, RunRow.pinned.is_(False))))
        for run_id in old:
            try:
                self.delete(run_id)
            except (Problem, OSError) as error:
                _LOG.warning("run %s is older than the retention and cannot be deleted: %s", run_id, error)
            else:
                kept = format_duration(self._retention_seconds)
                _LOG.info("run %s was deleted: it is older than CLIFFWATCH_RETENTION, %s, and not pinned", run_id, kept)


def _require_deletable(run_id: str, directory: Path) -> None:
    if status_in(directory).state is not RunState.FINISHED or launcher.worker_is_alive(directory):
        raise Problem(Code.WRONG_STATE, f"run {run_id} is not over; stop it first: `cliffwatch run stop {run_id}`")
    if hung := hung_processes(directory):
        detail = f"process {hung[0].pid} of run {run_id} was killed and hangs; other runs on its target wait for that"
        raise Problem(Code.WRONG_STATE, detail)
    if annotations_in(stored.event for stored in JournalReader(directory).events()).pinned:
        raise Problem(Code.CONFLICT, f"run {run_id} is pinned; unpin it first: `cliffwatch run unpin {run_id}`")
