"""Admit a new run: its journal is in place, durably, and in the index, or the run is withdrawn."""

import logging
import secrets
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cliffwatch.app.index import UNFINISHED_PREFIX, IndexReport, index_missing, index_run
from cliffwatch.base import durable
from cliffwatch.base.errors import Code, Problem
from cliffwatch.store.database import Database

_LOG = logging.getLogger(__name__)
#: Longer than a request waits for the database.
_TURN_SECONDS = 15.0


class RunTurns:
    """A lock for each run id: one request at a time creates a run of it. While the lock is held, whether the run exists
    is undecided: a journal under its name may still be withdrawn."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        #: How many have or want each id, and who has it.
        self._turns: dict[str, tuple[threading.Lock, int]] = {}

    @contextmanager
    def of(self, run_id: str) -> Iterator[None]:
        """Lock of a run id. Raises Problem(not_ready) when others hold it for too long."""
        with self._guard:
            lock, count = self._turns.get(run_id, (threading.Lock(), 0))
            self._turns[run_id] = lock, count + 1
        try:
            if not lock.acquire(timeout=_TURN_SECONDS):
                raise Problem(Code.NOT_READY, f"other requests make run {run_id} at the moment; try again")
            try:
                yield
            finally:
                lock.release()
        finally:
            with self._guard:
                lock, count = self._turns[run_id]
                self._turns[run_id] = lock, count - 1
                if count == 1:
                    del self._turns[run_id]


def admit(database: Database, directory: Path) -> None:
    """Index a run whose journal was just put into its place; what cannot be indexed does not stay there.

    To be called in the turn of its id (`RunTurns`) in which it was put there.
    """
    try:
        durable.sync_directory(directory.parent)
        with database.session() as session:
            index_run(session, directory)
    except BaseException:
        _withdraw(directory)
        raise


def _withdraw(directory: Path) -> None:
    """Withdraw a run that was not accepted. The reconciler has not seen it: it takes runs from the index.

    It goes in one step, so that nothing is left of it under its name, nor is it back after a power cut.
    """
    aside = directory.with_name(f"{UNFINISHED_PREFIX}refused-{secrets.token_hex(4)}")
    try:
        directory.rename(aside)
        durable.sync_directory(directory.parent)
    except OSError:
        shutil.rmtree(directory, ignore_errors=True)
    shutil.rmtree(aside, ignore_errors=True)


def take_in(database: Database, runs_directory: Path) -> IndexReport:
    """Index the journals that are not in the index.

    They count from now on, and the process that placed one may have been killed before it synced the journal's name.
    """
    if runs_directory.is_dir():
        try:
            durable.sync_directory(runs_directory)
        except OSError as error:
            # Nothing of it counts, then; the runs that are known go on.
            _LOG.error("%s cannot be synced, so no runs are looked for in it: %s", runs_directory, error)
            return IndexReport()
    with database.session() as session:
        return index_missing(session, runs_directory)
