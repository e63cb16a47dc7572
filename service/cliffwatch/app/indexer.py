"""Index journals that are not in the index, behind a service that is ready already.

As after the database was lost, there may be thousands. What may still go on is indexed before the service is ready:
runs that have not finished in the index, and the journals that changed last. The rest follows one by one. Afterwards
the directory is looked through for new journals, such as one that was moved back from the trash.
"""

import logging
import threading
from collections import deque
from pathlib import Path

from sqlalchemy import select

from cliffwatch.app.admission import RunTurns
from cliffwatch.app.index import IndexReport, index_all, journals_in, unindexed
from cliffwatch.base import durable
from cliffwatch.base.clock import Clock
from cliffwatch.base.rounds import Rounds
from cliffwatch.journal import files
from cliffwatch.store.database import Database
from cliffwatch.store.models import RunRow
from cliffwatch.store.queries import unfinished_runs

_LOG = logging.getLogger(__name__)
#: Number of journals that are indexed before the service is ready, those that changed last.
_AT_ONCE = 50
_PERIOD_SECONDS = 1.0
#: Interval at which the directory is looked through for new journals.
_LOOK_SECONDS = 30.0


class Indexer:
    """Background task that indexes journals without a row."""

    def __init__(self, database: Database, runs_directory: Path, turns: RunTurns, clock: Clock) -> None:
        self._database = database
        self._runs_directory = runs_directory
        self._turns = turns
        self._clock = clock
        self._waiting: deque[Path] = deque()
        #: Ids of rows that are made anew.
        self._anew: set[str] = set()
        #: Journals that could not be indexed; the next start tries again.
        self._refused: set[str] = set()
        self._looked_at = clock.monotonic()
        self._stopping = threading.Event()
        self._rounds = Rounds("indexer", _PERIOD_SECONDS, self.tick, "journals could not be indexed")

    def start(self) -> None:
        """Index what may still go on, and start to index the rest."""
        self.index_first()
        if self._waiting:
            _LOG.info("%d journals are indexed beside requests", len(self._waiting))
        self._rounds.start()

    def index_first(self) -> IndexReport:
        """Index what may still go on, and find out what else there is."""
        if not self._sync():
            return IndexReport()
        with self._database.session() as session:
            paths, self._anew = unindexed(session, self._runs_directory)
            live = {row.id for row in unfinished_runs(session)}
        paths.sort(key=lambda path: (path.name not in live, -_changed_at(path)))
        at_once = max(_AT_ONCE, sum(path.name in live for path in paths))
        with self._database.session() as session:
            report = index_all(session, paths[:at_once], self._anew)
        self._waiting.extend(paths[at_once:])
        self._say(report)
        return report

    def stop(self) -> None:
        self._stopping.set()
        self._rounds.stop()

    def tick(self) -> None:
        """Index the journals that wait; look for new ones, when that is due."""
        if not self._waiting and self._clock.monotonic() - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = self._clock.monotonic()
            self._waiting.extend(self._new())
        while self._waiting and not self._stopping.is_set():
            # The requests that create and delete this run wait, and no others.
            with self._turns.of(self._waiting[0].name):
                path = self._waiting.popleft()
                if path.is_dir():
                    with self._database.session() as session:
                        self._say(index_all(session, [path], self._anew))

    def _new(self) -> list[Path]:
        if not self._sync():
            return []
        with self._database.snapshot() as session:
            known = set(session.scalars(select(RunRow.id))) | self._refused
        return [path for path in journals_in(self._runs_directory) if path.name not in known]

    def _say(self, report: IndexReport) -> None:
        self._refused |= report.refused
        for run_id, faults in report.faults.items():
            _LOG.warning("the journal of run %s is damaged: %s", run_id, "; ".join(faults))

    def _sync(self) -> bool:
        """Sync the directory: the process that placed a journal may have been killed before it synced its name."""
        try:
            if self._runs_directory.is_dir():
                durable.sync_directory(self._runs_directory)
        except OSError as error:
            # Then none of its journals is indexed; runs that are in the index already go on.
            _LOG.error("%s cannot be synced, so no runs are looked for in it: %s", self._runs_directory, error)
            return False
        return True


def _changed_at(directory: Path) -> float:
    """When a run's events or its worker's heartbeat were last written; 0 where neither is there."""
    found = 0.0
    for name in (files.EVENTS, files.WORKER):
        try:
            found = max(found, (directory / name).stat().st_mtime)
        except OSError:
            continue
    return found
