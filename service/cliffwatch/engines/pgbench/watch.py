"""A thread that reads the server's statistics at fixed times, so that a server that hangs does not delay windows."""

import math
import queue
import threading
import time

import psycopg

from cliffwatch.engines.pgbench.load import PgbenchJob
from cliffwatch.engines.pgbench.readings import Reading, read_statistics
from cliffwatch.engines.pgbench.server import Connection, connect
from cliffwatch.engines.run_time import run_time

#: How far readings lie apart at most, in seconds: four queries of a fraction of a millisecond each.
INTERVAL_SECONDS = 0.25
_RETRY_SECONDS = 1.0


def reading_interval(window_seconds: float) -> float:
    """Seconds between readings: a window has a whole number of them, and one lies at its end."""
    return window_seconds / math.ceil(window_seconds / INTERVAL_SECONDS)


class StatisticsWatch:
    """Reads the statistics until the process ends; the thread is a daemon, since it may wait for the server forever."""

    def __init__(self, job: PgbenchJob) -> None:
        self._job = job
        self._interval = reading_interval(job.window_seconds)
        self._name = f"{job.application_name} watch"[-63:]
        self._connection: Connection | None = None
        self.readings: queue.SimpleQueue[Reading] = queue.SimpleQueue()
        threading.Thread(target=self._follow, daemon=True, name="statistics").start()

    def _follow(self) -> None:
        while True:
            now = run_time()
            due = self._job.start + math.ceil((now - self._job.start) / self._interval) * self._interval
            time.sleep(max(0.0, due - now))
            try:
                self._read()
            except (psycopg.Error, OSError):
                # The load's own sessions report what is wrong with the server; windows have no statistics meanwhile.
                self._connection = None
                time.sleep(_RETRY_SECONDS)

    def _read(self) -> None:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._job, self._name)
        self.readings.put(read_statistics(self._connection, self._job.application_name, run_time()))
