"""Windows of a log with a line for each operation: exact percentiles, rate, and age of the oldest operation."""

from array import array
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from cliffwatch.analysis.table import END_COLUMN, ERRORS_COLUMN, OLDEST_COLUMN, SKIPPED_COLUMN, Row
from cliffwatch.base.histogram import QUANTILES
from cliffwatch.labs.outputs.rows import EPOCH_FROM, RATE_COLUMN, BadLineError, Reading, quantile_column

#: Most operations that are held in memory, eight bytes each: all are read before any window is made, since logs are not
#: in order of time.
OPERATIONS_LIMIT = 50_000_000
#: Windows are one second long, and ten in a log of more than an hour.
_SHORT_SECONDS, _LONG_SECONDS, _LONG_FROM_SECONDS = 1.0, 10.0, 3600.0
_MILLISECONDS_LIMIT = 2**32
_EARLIER_SECONDS = 3600.0


class OperationLog:
    """Operations by name, each with the moment of its completion and its latency, both in seconds."""

    def __init__(self) -> None:
        self._ends: dict[str, array[int]] = defaultdict(lambda: array("I"))
        self._latencies: dict[str, array[float]] = defaultdict(lambda: array("f"))
        #: Moments and numbers of operations without a latency, by the column that counts them.
        self._without: dict[str, list[tuple[float, float]]] = {ERRORS_COLUMN: [], SKIPPED_COLUMN: []}
        self._zero: float | None = None
        self._count = 0
        self._last = 0.0

    def add(self, line: int, end: float, latency_seconds: float, operation: str = "") -> None:
        """Add an operation. Raises BadLineError if it cannot be of the first one's run, or exceeds OPERATIONS_LIMIT."""
        self._count += 1
        if self._count > OPERATIONS_LIMIT:
            raise BadLineError(
                line, f"is operation {self._count:,}, and no more are read; log averages, or a part of them"
            )
        self._ends[operation].append(self._milliseconds(line, end))
        self._latencies[operation].append(latency_seconds)

    def add_failure(self, line: int, end: float) -> None:
        """Add an operation that failed."""
        self._without[ERRORS_COLUMN].append((self._milliseconds(line, end) / 1000, 1))

    def add_skipped(self, line: int, at: float, count: float = 1) -> None:
        """Add operations that were due and were not executed."""
        self._without[SKIPPED_COLUMN].append((self._milliseconds(line, at) / 1000, count))

    def went_on(self, line: int, at: float) -> None:
        """Record that the load was under way at that moment, so that windows last until then."""
        self._last = max(self._last, self._milliseconds(line, at) / 1000)

    def reading(self) -> Reading:
        """Make a row for each window from the first to the last operation. The last window is as long as what is left,
        between half and one and a half of the others."""
        if not self._count:
            return Reading([])
        ends = {
            name: np.frombuffer(found, dtype=array("I").typecode).astype(np.float64) / 1000
            for name, found in self._ends.items()
        }
        latencies = {name: np.frombuffer(found, dtype=np.float32) for name, found in self._latencies.items()}
        without = [moment for counted in self._without.values() for moment, _ in counted]
        first = max(0.0, min([*without, *(float((ends[name] - latencies[name]).min()) for name in ends)]))
        last = max([self._last, *without, *(float(found.max()) for found in ends.values())])
        length = _SHORT_SECONDS if last - first <= _LONG_FROM_SECONDS else _LONG_SECONDS
        count = max(1, round((last - first) / length))
        rows = [Row(index * length, {}, {END_COLUMN: (index + 1) * length, RATE_COLUMN: 0.0}) for index in range(count)]
        rows[-1].numbers[END_COLUMN] = max(last - first, rows[-1].at + length / 2)
        for name in ends:
            _fill(rows, length, ends[name] - first, latencies[name], f"{name}." if name else "")
        for column, counted in self._without.items():
            for moment, number in counted:
                numbers = rows[min(count - 1, int((moment - first) / length))].numbers
                numbers[column] = numbers.get(column, 0.0) + number
        return Reading(rows, operations=self._count)

    def _milliseconds(self, line: int, end: float) -> int:
        """Convert an end time to milliseconds: of a wall clock, since an hour before the end of the file's first
        operation, as operations in later lines may have ended earlier. Raises BadLineError."""
        if self._zero is None:
            self._zero = max(0.0, end - _EARLIER_SECONDS) if end > EPOCH_FROM else 0.0
        since = round((end - self._zero) * 1000)
        if not 0 <= since < _MILLISECONDS_LIMIT:
            raise BadLineError(line, f"is of {end:g} s, more than 49 days from the first one; give the log of one run")
        return since


def _fill(
    rows: list[Row], length: float, ends: NDArray[np.float64], latencies: NDArray[np.float32], prefix: str
) -> None:
    """Add the rate and latencies of one name's operations to their windows' rows; to windows in which no operation
    ended, the age of the oldest one under way."""
    places = np.minimum((ends / length).astype(np.int64), len(rows) - 1)
    order = np.argsort(places, kind="stable")
    borders = np.searchsorted(places[order], np.arange(len(rows) + 1))
    for index, row in enumerate(rows):
        values = np.sort(latencies[order[borders[index] : borders[index + 1]]])
        row.numbers[RATE_COLUMN] += len(values) / (row.numbers[END_COLUMN] - row.at)
        if len(values):
            ranks = [max(1, int(np.ceil(quantile * len(values) - 1e-9))) - 1 for quantile in QUANTILES]
            row.numbers |= {
                f"{prefix}{quantile_column(100 * quantile)}": float(values[rank])
                for quantile, rank in zip(QUANTILES, ranks, strict=True)
            }
            row.numbers |= {f"{prefix}mean": float(values.mean()), f"{prefix}max": float(values[-1])}
    # Only now it is known which operations were under way in windows without completions.
    for place in np.flatnonzero(latencies > length):
        start, end = float(ends[place] - latencies[place]), float(ends[place])
        for index in range(max(0, int(start / length)), min(len(rows), int(end / length))):
            row = rows[index]
            age = row.numbers[END_COLUMN] - start
            if row.numbers[RATE_COLUMN] == 0:
                row.numbers[OLDEST_COLUMN] = max(row.numbers.get(OLDEST_COLUMN, 0.0), age)
