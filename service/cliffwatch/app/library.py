"""The runs that are kept: annotate one, delete one, and delete what is older than the retention.

A journal is deleted in one step, by a rename; what a service that was killed had begun to delete is deleted at the next
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
from cliffwatch.model.annotations import Annotations, AnnotationsChange
from cliffwatch.model.run_state import RunState
from cliffwatch.model.settings import Settings
from cliffwatch.store.database import Database
from cliffwatch.store.models import RunRow
from cliffwatch.store.queries import require_run

_LOG = logging.getLogger(__name__)
_DELETED_PREFIX = f"{UNFINISHED_PREFIX}deleted-"
#: The retention is counted in hours and days.
_PERIOD_SECONDS = 60.0


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
        """Finish deletions of a service that was killed, and delete runs that become too old from now on."""
        for path in self._runs_directory.glob(f"{_DELETED_PREFIX}*"):
            run_id = path.name.removeprefix(_DELETED_PREFIX).rpartition("-")[0]
            if not (self._runs_directory / run_id).exists():
                self._delete_row(run_id)
            _remove(path)
        if self._retention_seconds is not None:
            self._rounds.start()

    def stop(self) -> None:
        self._rounds.stop()

    def annotate(self, run_id: str, change: AnnotationsChange, by: str) -> RunRow:
        """Change a run's annotations: its row as it is then. Raises Problem: bad_request, journal_unreadable."""
        # Not while it is deleted: a pin that was accepted holds.
        with self._turns.of(run_id):
            with self._database.snapshot() as session:
                row = require_run(session, run_id)
            directory = Path(row.directory)
            shown = Annotations(labels=row.labels, note=row.note or "", pinned=row.pinned)

            def decide(events: list[Event]) -> list[Event]:
                after = change.applied_to(annotations_in(events))
                # The index has more than the journal where a line of it was damaged since.
                return [] if after == annotations_in(events) == shown else [annotated(after, by, self._clock.wall())]

            if not (directory / files.EVENTS).exists():
                raise Problem(Code.JOURNAL_UNREADABLE, f"{directory / files.EVENTS} is not there")
            EventLog(directory).append_all(decide)
            with self._database.session() as session:
                return index_run(session, directory)

    def delete(self, run_id: str) -> None:
        """Delete a run: its journal, its reports and its telemetry. Raises Problem(wrong_state) for one that is not
        over, or is pinned; then it is as it was."""
        with self._turns.of(run_id):
            with self._database.snapshot() as session:
                row = require_run(session, run_id)
            directory = Path(row.directory)
            aside = self._runs_directory / f"{_DELETED_PREFIX}{run_id}-{secrets.token_hex(4)}"
            # A journal that is not there was taken away by hand.
            if directory.exists():
                _require_deletable(row)
                directory.rename(aside)
            try:
                durable.sync_directory(self._runs_directory)
                self._delete_row(run_id)
            except BaseException:
                if aside.exists():
                    aside.rename(directory)
                raise
            if aside.exists():
                _remove(aside)

    def _delete_row(self, run_id: str) -> None:
        with self._database.session() as session:
            row = session.get(RunRow, run_id)
            if row is not None:
                session.delete(row)

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


def _require_deletable(row: RunRow) -> None:
    """Raises Problem(wrong_state). What the journal cannot say any more, the index says as it was."""
    run_id, directory = row.id, Path(row.directory)
    is_pinned = row.pinned
    try:
        state = status_in(directory).state
        # The line that pinned it may be damaged: one of the two is enough.
        is_pinned = is_pinned or annotations_in(stored.event for stored in JournalReader(directory).events()).pinned
    except (Problem, OSError):
        state = RunState(row.state)
    if state is RunState.REPORTING or (state is RunState.FINISHED and launcher.worker_is_alive(directory)):
        raise Problem(Code.WRONG_STATE, f"run {run_id} is about to end; try again in a moment")
    if state is not RunState.FINISHED:
        raise Problem(Code.WRONG_STATE, f"run {run_id} is not over; stop it first: `cliffwatch run stop {run_id}`")
    if hung := hung_processes(directory):
        detail = f"process {hung[0].pid} of run {run_id} was killed and hangs; other runs on its target wait for that"
        raise Problem(Code.WRONG_STATE, detail)
    if is_pinned:
        raise Problem(Code.WRONG_STATE, f"run {run_id} is pinned; unpin it first: `cliffwatch run unpin {run_id}`")


def _remove(path: Path) -> None:
    """Remove what no run is any more; the next start tries again."""
    try:
        shutil.rmtree(path)
    except OSError as error:
        _LOG.warning("%s is of a deleted run and cannot be removed: %s", path, error)
