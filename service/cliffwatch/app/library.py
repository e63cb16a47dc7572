"""Library of runs: annotate a run, delete a run, and move one to the trash.

A journal is deleted in one step, by a rename; a deletion that was interrupted is finished at the next start. Only
finished runs are deleted, and none that is pinned.
"""

import logging
import os
import secrets
import shutil
from pathlib import Path

from cliffwatch.app import launcher
from cliffwatch.app.admission import RunTurns
from cliffwatch.app.hung_runs import hung_processes
from cliffwatch.app.index import UNFINISHED_PREFIX, index_run, status_in
from cliffwatch.base import durable
from cliffwatch.base.clock import Clock
from cliffwatch.base.errors import Code, Problem
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
#: Directory of runs that retention deleted; a suffix follows the name of one that is there twice.
TRASH = f"{UNFINISHED_PREFIX}trash"
_AGAIN = "~"


class RunLibrary:
    """Annotation and deletion of runs."""

    def __init__(self, settings: Settings, database: Database, clock: Clock, turns: RunTurns) -> None:
        self._runs_directory = settings.runs_directory
        self._database = database
        self._clock = clock
        self._turns = turns
        self._trash = settings.runs_directory / TRASH

    def start(self) -> None:
        """Finish interrupted deletions of an earlier service."""
        for path in self._runs_directory.glob(f"{_DELETED_PREFIX}*"):
            self._forget(path.name.removeprefix(_DELETED_PREFIX).rpartition("-")[0])
            _remove(path)
        for name in self.trashed():
            self._forget(name.partition(_AGAIN)[0])

    def annotate(self, run_id: str, change: AnnotationsChange, by: str) -> RunRow:
        """Change a run's annotations; returns its updated row. Raises Problem: bad_request, journal_unreadable."""
        # Not during a deletion: a run whose pin was accepted must not be deleted.
        with self._turns.of(run_id):
            with self._database.snapshot() as session:
                row = require_run(session, run_id)
            directory = Path(row.directory)
            shown = Annotations(labels=row.labels, note=row.note or "", pinned=row.pinned)

            def decide(events: list[Event]) -> list[Event]:
                before = annotations_in(events)
                after = change.applied_to(before)
                # The index has more than the journal if an annotation's line in the journal was damaged since.
                return [] if after == before == shown else [annotated(after, by, self._clock.wall(), before)]

            if not (directory / files.EVENTS).exists():
                raise Problem(Code.JOURNAL_UNREADABLE, f"{directory / files.EVENTS} is not there")
            EventLog(directory).append_all(decide)
            with self._database.session() as session:
                return index_run(session, directory)

    def delete(self, run_id: str) -> None:
        """Delete a run: its journal, its reports and its telemetry.

        Raises Problem(wrong_state), and changes nothing, if the run has not finished, has a hung process or is pinned.
        """
        aside = self._runs_directory / f"{_DELETED_PREFIX}{run_id}-{secrets.token_hex(4)}"
        self._take_out(run_id, aside)
        if aside.exists():
            _remove(aside)

    def discard(self, run_id: str) -> Path:
        """Move a run to the trash, and return where it is. Raises Problem as `delete` does, and OSError."""
        self._trash.mkdir(mode=durable.PRIVATE_DIRECTORY, exist_ok=True)
        place = self._trash / run_id
        if os.path.lexists(place):
            place = self._trash / f"{run_id}{_AGAIN}{secrets.token_hex(4)}"
        self._take_out(run_id, place)
        return place

    def trashed(self) -> list[str]:
        """Names of what is in the trash."""
        return sorted(path.name for path in self._trash.iterdir()) if self._trash.is_dir() else []

    def empty(self, name: str) -> None:
        """Remove what the trash has under a name."""
        aside = self._runs_directory / f"{_DELETED_PREFIX}{name}-{secrets.token_hex(4)}"
        try:
            (self._trash / name).rename(aside)
        except OSError as error:
            _LOG.warning("%s in the trash cannot be removed: %s", name, error)
            return
        _remove(aside)

    def _take_out(self, run_id: str, aside: Path) -> None:
        """Rename a run's journal to `aside`, and delete its row; what fails is taken back."""
        with self._turns.of(run_id):
            with self._database.snapshot() as session:
                row = require_run(session, run_id)
            directory = Path(row.directory)
            # A missing journal was removed by hand.
            if directory.exists():
                _require_deletable(row)
                directory.rename(aside)
            try:
                durable.sync_directory(aside.parent)
                durable.sync_directory(self._runs_directory)
                self._delete_row(run_id)
            except BaseException:
                if aside.exists():
                    aside.rename(directory)
                raise

    def _forget(self, run_id: str) -> None:
        """Delete the row of a run whose journal was renamed for its deletion."""
        if not (self._runs_directory / run_id).exists():
            self._delete_row(run_id)

    def _delete_row(self, run_id: str) -> None:
        with self._database.session() as session:
            row = session.get(RunRow, run_id)
            if row is not None:
                session.delete(row)


def _require_deletable(row: RunRow) -> None:
    """Check that a run may be deleted. Raises Problem(wrong_state).

    Where the journal is unreadable, the run's row in the index decides.
    """
    run_id, directory = row.id, Path(row.directory)
    is_pinned = row.pinned
    try:
        state = status_in(directory).state
        # The journal's line of the pin may be damaged: a pin in the journal or in the index is enough.
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
    """Remove the directory of a deleted run; after a failure the next start tries again."""
    try:
        shutil.rmtree(path)
    except OSError as error:
        _LOG.warning("%s is of a deleted run and cannot be removed: %s", path, error)
