"""Read pgbench: progress lines (`-P`), a line for each transaction (`--log`), or their sums (`--aggregate-interval`).

The formats are in PostgreSQL's documentation of pgbench, of releases 9.4 to 18. Progress lines have only the mean of
an interval; a log of transactions gives exact percentiles.
"""

import re
from collections.abc import Iterable
from itertools import pairwise
from statistics import median

from cliffwatch.analysis.table import ERRORS_COLUMN
from cliffwatch.labs.outputs.operations import OperationLog
from cliffwatch.labs.outputs.rows import NUMBER, RATE_COLUMN, BadLineError, Progress, Reading, rows_of_progress

_NUMBER_OR_NONE = rf"-?(?:{NUMBER}|nan|NaN)"
_PROGRESS = re.compile(
    rf"progress: (?P<end>{NUMBER}) s, (?P<rate>{_NUMBER_OR_NONE}) tps, lat (?P<mean>{_NUMBER_OR_NONE}) ms"
    rf" stddev {_NUMBER_OR_NONE}"
    r"(?:, (?P<failed>\d{1,15}) failed)?"
)
#: Line of a transaction: client, number, latency in microseconds, script, end since the epoch in seconds and
#: microseconds, optional fields.
_TRANSACTION = re.compile(
    r"\d+ \d+ (?P<latency>\d{1,15}|skipped|failed|serialization|deadlock) \d+ (?P<at>\d{9,11}) (?P<micro>\d{1,6})\b"
)
#: Line of an interval: start in seconds since the epoch, number of transactions, then of their latencies in
#: microseconds the sum, sum of squares, minimum and maximum.
_SUMS = re.compile(r"(?P<at>\d{9,11}) (?P<count>\d{1,15}) (?P<sum>\d{1,18}) \d+ \d+ (?P<most>\d{1,15})\b")
#: Times above this are seconds since the epoch (`--progress-timestamp`).
_EPOCH_FROM = 1e8


def read(lines: Iterable[str]) -> Reading:
    """Read pgbench's output. Raises BadLineError for a line that begins like the format but cannot be read."""
    said: list[Progress] = []
    log = OperationLog()
    sums: list[tuple[int, re.Match[str]]] = []
    for number, line in enumerate(lines, start=1):
        if line.startswith("progress: "):
            if (found := _PROGRESS.match(line)) is None:
                raise BadLineError(number, f"is a progress line that cannot be read: {line[:80]!r}")
            said.append(Progress(number, float(found["end"]), _numbers(found)))
        elif found := _SUMS.match(line):
            sums.append((number, found))
        elif found := _TRANSACTION.match(line):
            end = int(found["at"]) + int(found["micro"]) / 1e6
            if found["latency"].isdigit():
                log.add(number, end, int(found["latency"]) / 1e6)
            elif found["latency"] != "skipped":
                log.add_failure(number, end)
    if said:
        rows = rows_of_progress(said, None if said[0].end > _EPOCH_FROM else 0.0)
        return Reading(rows, remark="A progress line of pgbench has a mean and no percentile; `--log` gives them.")
    return _of_sums(sums) if sums else log.reading()


def _numbers(found: re.Match[str]) -> dict[str, float]:
    numbers = {RATE_COLUMN: float(found["rate"]), "mean": float(found["mean"]) / 1000}
    return numbers | ({ERRORS_COLUMN: float(found["failed"])} if found["failed"] else {})


def _of_sums(sums: list[tuple[int, re.Match[str]]]) -> Reading:
    """Make rows of `--aggregate-interval` lines, which begin with their interval's start; its length is the median
    distance between starts."""
    starts = [float(found["at"]) for _, found in sums]
    length = median([later - earlier for earlier, later in pairwise(starts)] or [1.0])
    said, count = [], 0
    for (number, found), start in zip(sums, starts, strict=True):
        transactions = int(found["count"])
        count += transactions
        numbers = {RATE_COLUMN: transactions / length, "max": int(found["most"]) / 1e6}
        if transactions:
            numbers["mean"] = int(found["sum"]) / transactions / 1e6
        said.append(Progress(number, start + length, numbers))
    return Reading(rows_of_progress(said, starts[0]), operations=count)
