"""Read pgbench: progress lines (`-P`), a line for each transaction (`--log`), or their sums (`--aggregate-interval`).

The formats are in PostgreSQL's documentation of pgbench, of releases 9.4 to 18. Progress lines have only the mean of
an interval; a log of transactions gives exact percentiles.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cliffwatch.analysis.table import END_COLUMN, ERRORS_COLUMN, SKIPPED_COLUMN, Row
from cliffwatch.labs.outputs.operations import OperationLog
from cliffwatch.labs.outputs.rows import (
    EPOCH_FROM,
    NUMBER,
    RATE_COLUMN,
    BadLineError,
    Progress,
    Reading,
    require_rates,
    require_total,
    rows_of_progress,
)

_NUMBER_OR_NONE = rf"-?(?:{NUMBER}|nan|NaN)"
_PROGRESS = re.compile(
    rf"progress: (?P<end>{NUMBER}) s, (?P<rate>{_NUMBER_OR_NONE}) tps, lat (?P<mean>{_NUMBER_OR_NONE}) ms"
    rf" stddev {_NUMBER_OR_NONE}"
    rf"(?:, (?P<failed>\d{{1,15}}) failed)?(?:, lag {_NUMBER_OR_NONE} ms)?(?:, (?P<skipped>\d{{1,15}}) skipped)?"
)
#: Line of a transaction: client, number, latency in microseconds, script, end since the epoch in seconds and
#: microseconds, optional fields.
_TRANSACTION = re.compile(
    r"\d+ \d+ (?P<latency>\d{1,15}|skipped|failed|serialization|deadlock) \d+ (?P<at>\d{9,11}) (?P<micro>\d{1,6})\b"
)
#: Line of an interval: start in seconds since the epoch, number of transactions, then of their latencies in
#: microseconds the sum, sum of squares, minimum and maximum. With `--rate` four fields on the lag follow, with
#: `--latency-limit` the number of skipped transactions. Since release 15 all of them are there, and also transactions
#: retried, retries, and failures.
_SUMS = re.compile(r"\d{9,11}(?: \d{1,30}){5}(?: \d{1,30})*\s*$")
#: Lines of the summary at the end, on standard output: counts of the whole run, by column.
_TOTALS = {
    RATE_COLUMN: re.compile(r"number of transactions actually processed: (?P<count>\d{1,15})"),
    ERRORS_COLUMN: re.compile(r"number of failed transactions: (?P<count>\d{1,15})"),
    SKIPPED_COLUMN: re.compile(r"number of transactions skipped: (?P<count>\d{1,15})"),
}
_WORDS = {ERRORS_COLUMN: "failed", SKIPPED_COLUMN: "skipped"}
_FIELDS_OF_15 = 14
_SKIPPED_FIELD, _FAILED_FIELD = 10, 13
#: Least share of intervals that have a successor one length later.
_REGULAR = 0.9


def recognises(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of this format."""
    return any(pattern.match(line) for line in head for pattern in (_PROGRESS, _TRANSACTION, _SUMS))


def read(lines: Iterable[str]) -> Reading:
    """Read pgbench's output. Raises BadLineError for a line that begins like the format but cannot be read."""
    said: list[Progress] = []
    log = OperationLog()
    totals: dict[str, tuple[int, int]] = {}
    sums: list[_Interval] = []
    for number, line in enumerate(lines, start=1):
        if line.startswith("progress: "):
            if (found := _PROGRESS.match(line)) is None:
                raise BadLineError(number, f"is a progress line that cannot be read: {line[:80]!r}")
            said.append(Progress(number, float(found["end"]), _numbers(found)))
        elif _SUMS.match(line):
            sums.append(_sums_of(line))
        elif found := _TRANSACTION.match(line):
            end = int(found["at"]) + int(found["micro"]) / 1e6
            if found["latency"].isdigit():
                log.add(number, end, int(found["latency"]) / 1e6)
            elif found["latency"] == "skipped":
                log.add_skipped(number, end)
            else:
                log.add_failure(number, end)
        elif line.startswith("number of "):
            found_totals = {column: pattern.match(line) for column, pattern in _TOTALS.items()}
            totals |= {column: (number, int(found["count"])) for column, found in found_totals.items() if found}
    if said:
        rows = rows_of_progress(said, None if said[0].end > EPOCH_FROM else 0.0)
        _require_totals(rows, totals)
        return Reading(rows, remark="A progress line of pgbench has a mean and no percentile; `--log` gives them.")
    return _of_sums(sums) if sums else log.reading()


def _require_totals(rows: list[Row], totals: dict[str, tuple[int, int]]) -> None:
    """Raise BadLineError where the summary differs from the progress lines."""
    for column, (line, total) in totals.items():
        if column == RATE_COLUMN:
            require_rates(rows, line, total, "transactions")
        elif counts := [row.numbers[column] for row in rows if column in row.numbers]:
            require_total(line, f"{_WORDS[column]} transactions", sum(counts), total, 2 * max(counts))


def _numbers(found: re.Match[str]) -> dict[str, float]:
    numbers = {RATE_COLUMN: float(found["rate"]), "mean": float(found["mean"]) / 1000}
    counts = {ERRORS_COLUMN: found["failed"], SKIPPED_COLUMN: found["skipped"]}
    return numbers | {column: float(count) for column, count in counts.items() if count}


@dataclass(slots=True)
class _Interval:
    """Line of an interval: its start in seconds, counts, the sum of latencies and the longest, in microseconds."""

    start: int
    completed: int
    total: int
    longest: int
    skipped: int
    failed: int


def _sums_of(line: str) -> _Interval:
    fields = [int(field) for field in line.split()]
    start, count, total, _, _, longest, *_ = fields
    skipped = fields[_SKIPPED_FIELD] if len(fields) > _SKIPPED_FIELD else 0
    if len(fields) < _FIELDS_OF_15:
        # Before release 15 the number of transactions includes those that were skipped.
        return _Interval(start, max(0, count - skipped), total, longest, skipped, 0)
    return _Interval(start, count, total, longest, skipped, fields[_FAILED_FIELD])


def _of_sums(sums: list[_Interval]) -> Reading:
    """Make rows of `--aggregate-interval` lines. Each thread of pgbench writes a log of its own: the lines of all
    threads that one file holds are added up, interval by interval."""
    first = min(each.start for each in sums)
    length = _interval_seconds(sorted({each.start for each in sums}))
    found: dict[int, list[_Interval]] = defaultdict(list)
    for each in sums:
        found[int((each.start - first) // length)].append(each)
    rows = []
    for place, several in sorted(found.items()):
        completed = sum(each.completed for each in several)
        numbers = {
            END_COLUMN: (place + 1) * length,
            RATE_COLUMN: completed / length,
            "max": max(each.longest for each in several) / 1e6,
            ERRORS_COLUMN: float(sum(each.failed for each in several)),
            SKIPPED_COLUMN: float(sum(each.skipped for each in several)),
        }
        if completed:
            numbers["mean"] = sum(each.total for each in several) / completed / 1e6
        rows.append(Row(place * length, {}, numbers))
    threads = max(len(several) for several in found.values())
    remark = f"The sums of {threads} threads were added up." if threads > 1 else ""
    return Reading(rows, operations=sum(each.completed for each in sums), remark=remark)


def _interval_seconds(starts: Sequence[int]) -> float:
    """Length of an interval: the shortest time after which the intervals repeat. Threads may begin a second apart."""
    known, last = set(starts), starts[-1]
    for length in (start - starts[0] for start in starts[1:]):
        followed = [start + length in known for start in starts if start + length <= last]
        if sum(followed) >= _REGULAR * len(followed):
            return float(length)
    return 1.0
