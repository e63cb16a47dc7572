"""PostgreSQL connections with a time limit on every answer.

A server that was stopped, or a host that hangs, keeps its connections and answers nothing on them: the kernel goes on
acknowledging, so no TCP timeout is reached, and a timeout in the server would not be enforced by a server that hangs.
"""

from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus
from sqlalchemy import Dialect, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.pool import ConnectionPoolEntry

#: How long a request waits for a connection, and a connection for the server.
CONNECT_SECONDS = 5
#: How long one statement may take before the server counts as unreachable.
ANSWER_SECONDS = 10.0
_LOOK_SECONDS = 0.1

R = TypeVar("R")


class _PatientConnection(psycopg.Connection[tuple[Any, ...]]):
    def wait(self, gen: PQGen[R], interval: float = _LOOK_SECONDS, timeout: float | None = None) -> R:
        """Wait for an answer. Raises psycopg.OperationalError after ANSWER_SECONDS; the connection is closed then."""
        try:
            return super().wait(gen, interval, ANSWER_SECONDS if timeout is None else timeout)
        except psycopg.OperationalError as error:
            if self.info.transaction_status is not TransactionStatus.ACTIVE:
                raise
            # The answer may still come, and would be taken for that of the next statement.
            self.pgconn.finish()
            raise psycopg.OperationalError(f"the server has not answered for {ANSWER_SECONDS:g} s") from error


def open_postgresql(url: URL, lock_seconds: float, *, limits_answers: bool) -> Engine:
    """Open an engine for a PostgreSQL URL.

    `lock_seconds` limits a statement's wait for a lock; with `limits_answers`, a statement takes ANSWER_SECONDS at
    most.
    """
    # Set explicitly: from a database without a set encoding, text would be read as bytes.
    options: dict[str, object] = {"connect_timeout": CONNECT_SECONDS, "client_encoding": "utf8"}
    if "options" not in url.query:
        options |= {"options": f"-c lock_timeout={round(lock_seconds * 1000)}"}
    engine = create_engine(
        url, pool_pre_ping=True, pool_size=10, max_overflow=30, pool_timeout=CONNECT_SECONDS, connect_args=options
    )
    if limits_answers:
        event.listen(engine, "do_connect", _connect)
    return engine


def _connect(
    dialect: Dialect, record: ConnectionPoolEntry, arguments: list[Any], options: dict[str, Any]
) -> _PatientConnection:
    return _PatientConnection.connect(*arguments, **options)
