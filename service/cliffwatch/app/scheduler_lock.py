"""Lock that allows one scheduler at a time: on a file of the state directory and, on PostgreSQL, on the database too.

Both locks end with the process that holds them, however it ends.
"""

import os
import threading
from pathlib import Path

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from cliffwatch.base import locks
from cliffwatch.base.clock import Clock
from cliffwatch.base.errors import Code, Problem

#: Key of the PostgreSQL lock: any number that nothing else in this database uses.
_ADVISORY_KEY = 0x636C_6966_6677_6174
_PAUSE_SECONDS = 0.1


class SchedulerLock:
    """Exclusive lock of the scheduler, held from `acquire` to `release`."""

    def __init__(self, path: Path, engine: Engine, clock: Clock, patience_seconds: float = 5.0) -> None:
        """`patience_seconds`: how long to wait for another service that is about to end."""
        self._path = path
        self._engine = engine
        self._clock = clock
        self._patience_seconds = patience_seconds
        self._descriptor: int | None = None
        self._connection: Connection | None = None
        # Requests may check the lock while a firing does.
        self._turn = threading.Lock()

    def acquire(self) -> None:
        """Take the lock. Raises Problem(conflict) when another scheduler holds it and does not release it."""
        deadline = self._clock.monotonic() + self._patience_seconds
        while not self._try():
            if self._clock.monotonic() >= deadline:
                raise Problem(
                    Code.CONFLICT,
                    f"another service keeps the schedules of this state directory or database ({self._path}); stop it, "
                    "or give this one a state directory and a database of its own",
                )
            self._clock.sleep(_PAUSE_SECONDS)

    def is_held(self) -> bool:
        """Whether the lock is still held.

        A database lock that was lost with its connection is taken again if it is free.
        """
        with self._turn:
            if self._descriptor is None:
                return False
            if self._connection is None:
                return self._engine.dialect.name != "postgresql" or self._try_database()
            try:
                self._connection.execute(text("SELECT 1"))
            except DBAPIError:
                self._connection.invalidate()
                self._connection.close()
                self._connection = None
                return self._try_database()
            return True

    def release(self) -> None:
        if self._connection is not None:
            # The lock belongs to the database session: a connection in the pool would keep it, and the server notices a
            # closed connection only after a while.
            try:
                self._connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _ADVISORY_KEY})
            except DBAPIError:
                self._connection.invalidate()
            self._connection.close()
            self._connection = None
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _try(self) -> bool:
        if self._descriptor is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._descriptor = locks.hold(self._path, patience_seconds=0)
            except TimeoutError:
                return False
        if self._engine.dialect.name != "postgresql" or self._connection is not None or self._try_database():
            return True
        self.release()
        return False

    def _try_database(self) -> bool:
        try:
            connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        except DBAPIError:
            return False
        if connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": _ADVISORY_KEY}):
            self._connection = connection
            return True
        connection.close()
        return False
