"""pgbench's log of transactions, parsed into windows.

A line of the log (PostgreSQL's documentation of pgbench, "Per-Transaction Logging"):

    CLIENT NUMBER TIME SCRIPT EPOCH MICROSECONDS [LAG]

TIME is how long the transaction took, in microseconds, `failed` (and kinds of it) for one that failed; EPOCH and
MICROSECONDS when it ended. With a rate, TIME counts from when the transaction was due, and LAG is how much later it
began, in microseconds.
"""

from array import array
from dataclasses import dataclass, field

import numpy as np

from cliffwatch.base.histogram import Histogram
from cliffwatch.model.operation import Operation

SERVICE = f"{Operation.TRANSACTION}_service"
_BATCH = 4096
_LINE_LIMIT_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Transaction:
    """One transaction: when it ended, in seconds on the run's time line, and how long it took.

    `microseconds` counts from when it was due; None for one that failed. `lag_microseconds`: how much later it began.
    """

    ended: float
    microseconds: int | None
    lag_microseconds: int | None


def parse_line(line: bytes, ahead_seconds: float = 0.0) -> Transaction:
    """Parse a line of the log. `ahead_seconds`: from pgbench's clock to the run's. Raises ValueError."""
    fields = line.split()
    if len(fields) < 6:
        raise ValueError(f"a line of pgbench's log has {len(fields)} fields: {line[:80]!r}")
    took, ended = fields[2], int(fields[4]) + int(fields[5]) / 1e6 + ahead_seconds
    lag = int(fields[6]) if len(fields) > 6 else None
    return Transaction(ended, int(took) if took.isdigit() else None, lag)


class LineBuffer:
    """Whole lines of a stream that arrives in chunks."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Lines that `chunk` completes. Raises ValueError where a line does not end."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > _LINE_LIMIT_BYTES:
            raise ValueError(f"a line of pgbench's log does not end: {self._rest[:80]!r}")
        return lines


class _Latencies:
    """Latencies of one name, collected in batches: recording one at a time costs more than the transaction."""

    def __init__(self) -> None:
        self._histogram = Histogram()
        self._waiting = array("q")

    def add(self, microseconds: int) -> None:
        self._waiting.append(microseconds)
        if len(self._waiting) >= _BATCH:
            self._record()

    def histogram(self) -> Histogram:
        self._record()
        return self._histogram

    def _record(self) -> None:
        if self._waiting:
            self._histogram.record_many(np.frombuffer(self._waiting, dtype=np.int64) * 1000)
            self._waiting = array("q")


@dataclass(slots=True)
class WindowOfTransactions:
    """Transactions that ended in one window."""

    transactions: int = 0
    failed: int = 0
    lag_seconds: float = 0.0
    _response: _Latencies = field(default_factory=_Latencies)
    _service: _Latencies = field(default_factory=_Latencies)

    def add(self, transaction: Transaction) -> None:
        if transaction.microseconds is None:
            self.failed += 1
            return
        self.transactions += 1
        lag = transaction.lag_microseconds or 0
        self.lag_seconds = lag / 1e6
        self._response.add(transaction.microseconds)
        if transaction.lag_microseconds is not None:
            self._service.add(max(0, transaction.microseconds - lag))

    def latency(self) -> dict[str, Histogram]:
        """Histograms by latency name; the service time is there only with a rate, without which nothing is late."""
        found = {Operation.TRANSACTION.value: self._response.histogram(), SERVICE: self._service.histogram()}
        return {name: histogram for name, histogram in found.items() if histogram.count}


class TransactionWindows:
    """Windows of transactions, in their order; a window that is taken is over."""

    def __init__(self, start: float, window_seconds: float) -> None:
        self._start = start
        self._window_seconds = window_seconds
        self._taken = 0
        self._windows: dict[int, WindowOfTransactions] = {}

    def add(self, transaction: Transaction) -> None:
        """Count a transaction in the window in which it ended. One before the first window is not counted; one whose
        window is taken already counts in the next one."""
        number = int((transaction.ended - self._start) // self._window_seconds)
        if number >= 0:
            self._windows.setdefault(max(number, self._taken), WindowOfTransactions()).add(transaction)

    def take(self) -> WindowOfTransactions:
        """The next window."""
        self._taken += 1
        return self._windows.pop(self._taken - 1, WindowOfTransactions())
