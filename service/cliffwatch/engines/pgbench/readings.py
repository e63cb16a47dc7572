"""Statistics of a PostgreSQL server, read several times a second, and what they say of one window.

- WAL and checkpoints: pg_stat_wal, pg_stat_io (18 and later), pg_stat_bgwriter (until 16), pg_stat_checkpointer.
- Sessions: what pgbench's sessions that are in a transaction wait for (pg_stat_activity). Averaged over the samples of
  a window and divided by the transactions a second, that is how long a transaction waits for what (Little's law: the
  mean number of sessions in a state is the rate at which it is entered times the mean time spent in it).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import LiteralString

from cliffwatch.engines.pgbench.server import Connection
from cliffwatch.model.database import (
    CHECKPOINT_BEGUN,
    CHECKPOINT_COMPLETED,
    CLIENT,
    CPU,
    DATA,
    LOCK,
    OTHER,
    SAMPLES,
    WAL,
    WAL_FLUSH_TIME,
    WAL_FLUSHES,
    WAL_WRITE_TIME,
)
from cliffwatch.model.window import EngineEvent

_STARTED, _REQUESTED = "database_checkpoints", "database_checkpoints_requested"
#: Counters that the server keeps since its start, in the order of the queries' columns.
TOTALS = (
    "database_wal_bytes",
    WAL_FLUSHES,
    WAL_WRITE_TIME,
    WAL_FLUSH_TIME,
    _STARTED,
    _REQUESTED,
    "database_checkpoint_write_milliseconds",
    "database_checkpoint_sync_milliseconds",
    "database_checkpoint_buffers",
)
_WAL_WAITS = frozenset({"walwrite", "walsync", "walinitwrite", "walinitsync", "walsyncmethodassign"})

_WAL_UNTIL_17: LiteralString = "SELECT wal_bytes, wal_sync, wal_write_time, wal_sync_time FROM pg_stat_wal"
_WAL_SINCE_18: LiteralString = (
    "SELECT (SELECT wal_bytes FROM pg_stat_wal), sum(fsyncs), sum(write_time), sum(fsync_time)"
    " FROM pg_stat_io WHERE object = 'wal'"
)
_CHECKPOINTS_UNTIL_16: LiteralString = (
    "SELECT checkpoints_timed + checkpoints_req, checkpoints_req, checkpoint_write_time, checkpoint_sync_time,"
    " buffers_checkpoint FROM pg_stat_bgwriter"
)
_CHECKPOINTS_SINCE_17: LiteralString = (
    "SELECT num_timed + num_requested, num_requested, write_time, sync_time, buffers_written FROM pg_stat_checkpointer"
)
_LAST_CHECKPOINT: LiteralString = (
    "SELECT checkpoint_lsn::text, extract(epoch FROM clock_timestamp() - checkpoint_time)::float8"
    " FROM pg_control_checkpoint()"
)
_SESSIONS: LiteralString = (
    "SELECT state, coalesce(wait_event_type, ''), coalesce(wait_event, ''), count(*),"
    " max(extract(epoch FROM clock_timestamp() - xact_start))::float8"
    " FROM pg_stat_activity WHERE application_name = %s AND datname = current_database() GROUP BY 1, 2, 3"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """The statistics at one moment. `at`: on the run's time line, in seconds.

    `connected`: pgbench's sessions. `sessions`: those in a transaction, by counter; `oldest_seconds`: how long the
    oldest of their transactions has lasted, 0 without one. `checkpoint`: position of the last completed checkpoint,
    which began `checkpoint_age_seconds` ago.
    """

    at: float
    totals: dict[str, int]
    checkpoint: str
    checkpoint_age_seconds: float
    connected: int
    sessions: Counter[str] = field(default_factory=Counter)
    oldest_seconds: float = 0.0


def read_statistics(connection: Connection, application_name: str, at: float) -> Reading:
    """Read the statistics. Raises psycopg.Error."""
    version = connection.info.server_version
    wal = _WAL_SINCE_18 if version >= 180000 else _WAL_UNTIL_17
    checkpoints = _CHECKPOINTS_SINCE_17 if version >= 170000 else _CHECKPOINTS_UNTIL_16
    values = [value for question in (wal, checkpoints) for value in connection.execute(question).fetchone() or ()]
    last = connection.execute(_LAST_CHECKPOINT).fetchone()
    rows = connection.execute(_SESSIONS, (application_name,)).fetchall()
    busy = [row for row in rows if row[0] not in {None, "idle"}]
    sessions: Counter[str] = Counter()
    for _, kind, event, count, _ in busy:
        sessions[waits_for(kind, event)] += count
    return Reading(
        at=at,
        totals={name: round(value or 0) for name, value in zip(TOTALS, values, strict=True)},
        checkpoint=str(last[0]) if last else "",
        checkpoint_age_seconds=float(last[1]) if last else 0.0,
        connected=sum(row[3] for row in rows),
        sessions=sessions,
        oldest_seconds=max((row[4] or 0.0 for row in busy), default=0.0),
    )


def waits_for(kind: str, event: str) -> str:
    """Counter of a session by its `wait_event_type` and `wait_event`; their spelling differs between versions."""
    name = event.lower()
    if kind in {"IO", "LWLock"} and name in _WAL_WAITS:
        return WAL
    return {"": CPU, "IO": DATA, "Lock": LOCK, "Client": CLIENT}.get(kind, OTHER)


class Statistics:
    """Readings of a load in their order: counters of its windows, and events of checkpoints."""

    def __init__(self, *, times_flushes: bool) -> None:
        """`times_flushes`: whether the server times writing and flushing the WAL; else there are no counters of it."""
        self._names = tuple(name for name in TOTALS if times_flushes or name not in {WAL_WRITE_TIME, WAL_FLUSH_TIME})
        self._last: Reading | None = None
        self._totals: Counter[str] = Counter()
        self._sessions: Counter[str] = Counter()
        #: Checkpoints that were counted and are not completed; negative for completed ones that are not counted yet.
        self._in_progress = 0

    @property
    def last(self) -> Reading | None:
        return self._last

    def add(self, reading: Reading) -> list[EngineEvent]:
        """Take a reading; returns what it says of checkpoints."""
        last, self._last = self._last, reading
        self._sessions.update(reading.sessions)
        self._sessions[SAMPLES] += 1
        if last is None:
            return []
        self._totals.update(
            # After a restart or a reset the server counts from zero.
            {
                name: value - last.totals[name] if value >= last.totals[name] else value
                for name, value in reading.totals.items()
            }
        )
        return list(self._checkpoints(last, reading))

    def counters(self) -> dict[str, int]:
        """Counters of what was read since the last call; empty where nothing was."""
        if not self._sessions[SAMPLES]:
            return {}
        states = (SAMPLES, WAL, DATA, LOCK, CLIENT, CPU, OTHER)
        found = {name: self._totals[name] for name in self._names} | {name: self._sessions[name] for name in states}
        self._totals, self._sessions = Counter(), Counter()
        return found

    def _checkpoints(self, last: Reading, reading: Reading) -> Iterator[EngineEvent]:
        """Events of checkpoints. The server counts one when it begins, a fast one when it is over, at times after it
        moved the position of the last one; when that began is known in whole seconds."""
        begun = reading.totals[_STARTED] - last.totals[_STARTED]
        if begun > 0:
            self._in_progress += begun
            if self._in_progress > 0 and reading.checkpoint == last.checkpoint:
                requested = reading.totals[_REQUESTED] > last.totals[_REQUESTED]
                yield EngineEvent(reading.at, CHECKPOINT_BEGUN, {"requested": requested})
        if reading.checkpoint != last.checkpoint:
            self._in_progress = 0 if self._in_progress > 0 else self._in_progress - 1
            took = round(max(0.0, reading.checkpoint_age_seconds), 3)
            yield EngineEvent(reading.at, CHECKPOINT_COMPLETED, {"seconds": took})
