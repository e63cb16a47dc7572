"""Execution of a pgbench load: start pgbench, read its log and the server's statistics, and print windows."""

import os
import queue
import selectors
import signal
import sys
import time
from pathlib import Path

import psycopg

from cliffwatch.base.errors import Problem
from cliffwatch.engines.late_start import begin_of
from cliffwatch.engines.pgbench.load import PgbenchJob
from cliffwatch.engines.pgbench.program import RunningPgbench, session_options
from cliffwatch.engines.pgbench.readings import Statistics
from cliffwatch.engines.pgbench.server import connect, libpq_environment, may_time_flushes
from cliffwatch.engines.pgbench.transactions import LineBuffer, TransactionWindows, parse_line
from cliffwatch.engines.pgbench.watch import StatisticsWatch, reading_interval
from cliffwatch.engines.run_time import run_time
from cliffwatch.model.window import (
    OLDEST_OUTSTANDING,
    EngineEnd,
    EngineRecord,
    EngineWindow,
    format_engine_line,
)

#: A window is closed so long after its end, in intervals of the statistics: by then its lines and the statistics at its
#: end are there, and the next ones are not.
_CLOSING_INTERVALS = 0.8
#: Log is read this often, many lines at once: waking for each would cost as much as the transactions.
_READ_SECONDS = 0.01
_WAIT_SECONDS = 0.1
#: The server's statistics are this old at most, as an answer to what is outstanding.
_FRESH_SECONDS = 1.0
#: pgbench is started for longer than the load, which may begin later, and this process ends it.
_SPARE_SECONDS = 3600.0
_CHUNK_BYTES = 1 << 20
_ABORTED = b" aborted in "
_FULL = "No space left on device"


def execute(job: PgbenchJob) -> int:
    """Execute the load; prints its windows, events and its end. Returns the exit status."""
    try:
        with connect(job, f"{job.application_name} start"[:63]) as connection:
            times_flushes = may_time_flushes(connection)
        end = _Load(job, times_flushes=times_flushes).execute()
    except (Problem, psycopg.Error, OSError, ValueError) as error:
        end = EngineEnd("failed", " ".join(str(error).split()))
    _print(end)
    return 0 if end.status == "completed" else 1


class _Load:
    """One pgbench, from its start to its end."""

    def __init__(self, job: PgbenchJob, *, times_flushes: bool) -> None:
        self._job = job
        self._window_seconds = job.window_seconds
        self._start, self._stop = job.start, job.stop
        self._stopping = False
        signal.signal(signal.SIGTERM, self._stop_asked)
        #: From pgbench's clock, which is the wall clock of its start, to the run's time line.
        self._ahead = run_time() - time.time()
        environment = {**libpq_environment(job), "PGOPTIONS": session_options(times_flushes=times_flushes)}
        seconds = job.stop - run_time() + _SPARE_SECONDS
        self._pgbench = RunningPgbench(job.load, seconds, Path(job.scratch), environment)
        self._statistics = Statistics(times_flushes=times_flushes)
        self._watch = StatisticsWatch(job)
        self._closing_seconds = _CLOSING_INTERVALS * reading_interval(job.window_seconds)
        self._buffers = {log: LineBuffer() for log in self._pgbench.logs}
        self._windows: TransactionWindows | None = None
        self._has_begun = False
        self._last_ended = self._start
        self._errors = b""
        self._selector = selectors.DefaultSelector()
        for descriptor in (*self._pgbench.logs, self._pgbench.errors):
            self._selector.register(descriptor, selectors.EVENT_READ)

    def _stop_asked(self, number: int, frame: object) -> None:
        self._stopping = True

    def execute(self) -> EngineEnd:
        try:
            return self._execute()
        finally:
            self._pgbench.end()

    def _execute(self) -> EngineEnd:
        if failure := self._begin():
            return failure
        number = 0
        while self._start + number * self._window_seconds < self._stop - self._window_seconds / 2:
            begin = self._start + number * self._window_seconds
            end = begin + self._window_seconds
            if failure := self._read_until(end + self._closing_seconds):
                return failure
            print(format_engine_line(self._window(begin, end), number), flush=True)
            number += 1
            if self._stopping:
                break
        return EngineEnd("completed")

    def _begin(self) -> EngineEnd | None:
        """Wait until all clients are connected, and decide on the first window; returns why the load cannot begin."""
        while not self._are_connected():
            if failure := self._read(_WAIT_SECONDS):
                return failure
            if self._stopping:
                return EngineEnd("completed")
        begin = begin_of(run_time(), self._start, self._stop, self._window_seconds, may_move=self._job.may_move)
        self._start, self._stop = begin.start, begin.stop
        if begin.event is not None:
            _print(begin.event)
        self._windows = TransactionWindows(self._start, self._window_seconds)
        self._last_ended = self._start
        failure = self._read_until(self._start)
        self._statistics.counters()  # What was counted before the first window is in none.
        return failure

    def _read_until(self, moment: float) -> EngineEnd | None:
        """Read until a moment of the run's time line, or a stop; returns why the load is over, if it is."""
        while (left := moment - run_time()) > 0 and not self._stopping:
            if failure := self._read(left):
                return failure
        return self._read(0.0)

    def _are_connected(self) -> bool:
        # The first transactions begin when all clients are connected.
        last = self._statistics.last
        return self._has_begun or (last is not None and last.connected >= self._job.load.clients)

    def _read(self, seconds: float) -> EngineEnd | None:
        """Read what arrives within `seconds`, or a little of it; returns why the load is over, if it is."""
        ready = self._selector.select(min(seconds, _WAIT_SECONDS))
        for key, _ in ready:
            chunk = _chunk(key.fd)
            if key.fd == self._pgbench.errors:
                self._errors = (self._errors + chunk)[-_CHUNK_BYTES:]
                sys.stderr.buffer.write(chunk)
                sys.stderr.flush()
            else:
                self._take(key.fd, chunk)
        self._take_readings()
        if failure := self._failure():
            return failure
        if ready and seconds > _READ_SECONDS:
            time.sleep(_READ_SECONDS)
        return None

    def _take(self, log: int, chunk: bytes) -> None:
        for line in self._buffers[log].feed(chunk):
            transaction = parse_line(line, self._ahead)
            self._last_ended = transaction.ended
            self._has_begun = True
            if self._windows is not None:
                self._windows.add(transaction)

    def _take_readings(self) -> None:
        while True:
            try:
                reading = self._watch.readings.get_nowait()
            except queue.Empty:
                return
            for event in self._statistics.add(reading):
                _print(event)

    def _failure(self) -> EngineEnd | None:
        """Why the load is over: pgbench ended, or goes on without some of its clients."""
        if _ABORTED not in self._errors and self._pgbench.process.poll() is None:
            return None
        said = self._errors.decode("utf-8", "replace").strip().splitlines()
        first = next((line for line in said if _ABORTED.decode() in line), said[-1] if said else "it said nothing")
        message = f"pgbench: {first.removeprefix('pgbench: ').removeprefix('error: ')}"
        return EngineEnd("failed", message, restart=_FULL not in message)

    def _window(self, start: float, end: float) -> EngineWindow:
        assert self._windows is not None, "the load has begun"
        window = self._windows.take()
        counters = {"operations": window.transactions, "errors": window.failed} | self._statistics.counters()
        gauges = {}
        outstanding = self._oldest_outstanding(min(end, run_time()))
        if outstanding is not None:
            gauges[OLDEST_OUTSTANDING] = outstanding
        if (measured := run_time() - start) < end - start:
            gauges["measured_seconds"] = round(measured, 6)
        if self._job.load.rate is not None:
            gauges["requested_operations_per_second"] = self._job.load.rate
            gauges["schedule_debt_seconds"] = round(window.lag_seconds, 6)
        return EngineWindow(start, end, counters, gauges, window.latency())

    def _oldest_outstanding(self, at: float) -> float | None:
        """How long the oldest transaction has been outstanding at a moment, in seconds; None if not known."""
        last = self._statistics.last
        if last is not None and at - last.at < _FRESH_SECONDS:
            return round(last.oldest_seconds, 6)
        # The server answers no query. One that also completes nothing hangs: transactions have been due since one
        # interval of the rate after the last that ended.
        silent = at - self._last_ended - (0.0 if self._job.load.rate is None else 1.0 / self._job.load.rate)
        return round(max(0.0, silent), 6)


def _chunk(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK_BYTES)
    except (BlockingIOError, OSError):
        return b""  # A terminal whose other end is closed.


def _print(record: EngineRecord) -> None:
    print(format_engine_line(record), flush=True)
