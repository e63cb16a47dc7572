"""Admit a new run: make its journal durable and index it, or withdraw the run."""

import logging
import secrets
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cliffwatch.app.index import UNFINISHED_PREFIX, index_run
from cliffwatch.base import durable
from cliffwatch.base.errors import Code, Problem
from cliffwatch.store.database import Database

_LOG = logging.getLogger(__name__)
#: Timeout for the lock of a run id: longer than a request waits for the database.
_TURN_SECONDS = 15.0


class RunTurns:
    """One lock for each run id: only one request at a time creates the run with that id.

    While the lock is held, it is undecided whether the run exists: its journal may still be withdrawn.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        #: Lock of each run id, and the number of requests that hold it or wait for it.
        self._turns: dict[str, tuple[threading.Lock, int]] = {}

    @contextmanager
    def of(self, run_id: str) -> Iterator[None]:
        """Hold the lock of a run id. Raises Problem(not_ready) when other requests hold it for too long."""
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
    """Index a run whose journal was just renamed into place; remove the journal if indexing fails.

    The caller must have held the lock of the run id (`RunTurns`) since it put the journal in place.
    """
    try:
        durable.sync_directory(directory.parent)
        with database.session() as session:
            index_run(session, directory)
    except BaseException:
        _withdraw(directory)
        raise


def _withdraw(directory: Path) -> None:
    """Remove the journal of a run that was not accepted. The run is not in the index, so no worker was started for it.

    The directory is first renamed and the rename is synced, so that nothing remains under the run's name, and nothing
    reappears there after a power cut.
    """
    aside = directory.with_name(f"{UNFINISHED_PREFIX}refused-{secrets.token_hex(4)}")
    try:
        directory.rename(aside)
        durable.sync_directory(directory.parent)
    except OSError:
        shutil.rmtree(directory, ignore_errors=True)
    shutil.rmtree(aside, ignore_errors=True)
