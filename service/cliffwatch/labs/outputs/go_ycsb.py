"""Read go-ycsb: the lines of each `measurement.interval`, or a line for each operation (`-p measurementtype=csv`).

All figures of an interval's line are since the start. Counts and means are converted to the interval's own by
differences; percentiles cannot be, and are left out. The mean since the start is in whole microseconds, so that the
interval's is less exact the longer the run lasts, and is left out where it is not known to 5 %.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from cliffwatch.analysis.stalls import Slowest
from cliffwatch.analysis.table import END_COLUMN, ERRORS_COLUMN
from cliffwatch.labs.outputs.operations import OperationLog
from cliffwatch.labs.outputs.rows import (
    ABSENT_INTERVALS,
    NUMBER,
    RATE_COLUMN,
    BadLineError,
    Progress,
    Reading,
    require_total,
    rows_of_intervals,
)

_BEGINNING = re.compile(r"[A-Z_]+ +- Takes\(s\): ")
_LINE = re.compile(
    rf"(?P<name>[A-Z_]+) +- Takes\(s\): (?P<takes>{NUMBER}), Count: (?P<count>\d{{1,15}}), OPS: \S+,"
    rf" Avg\(us\): (?P<mean>\d{{1,15}}), Min\(us\): \d{{1,15}}, Max\(us\): (?P<max>\d{{1,15}}),"
)
_HEAD = "operation,timestamp_us,latency_us"
_OPERATION = re.compile(r"(?P<name>[A-Z_]+),(?P<start>\d{1,18}),(?P<latency>\d{1,15})\s*$")
_ALL, _FAILED = "TOTAL", "_ERROR"
#: Most that an interval's mean may be off by, as a share of it.
_INEXACT = 0.05
_EXACT = "`-p measurementtype=csv` writes a line for each operation"


@dataclass(slots=True)
class _Batch:
    """Lines printed at one time: seconds since the start; by operation the count, the mean and the longest latency in
    seconds since then."""

    line: int
    takes: float
    counts: dict[str, int] = field(default_factory=dict)
    means: dict[str, float] = field(default_factory=dict)
    longest: float = 0.0

    def count(self, *, failed: bool) -> int:
        """Number of operations so far that failed, or that did not."""
        return sum(count for name, count in self.counts.items() if name != _ALL and name.endswith(_FAILED) is failed)


def recognises(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of this format."""
    return any(_BEGINNING.match(line) or line.rstrip() == _HEAD for line in head)


def read(lines: Iterable[str]) -> Reading:
    """Read go-ycsb's output. Raises BadLineError for a line that cannot be read, and where the total differs."""
    batches: list[_Batch] = []
    log = OperationLog()
    line, total, has_head = 0, 0, False
    for number, text in enumerate(lines, start=1):
        if _BEGINNING.match(text):
            _add(batches, number, text)
        elif text.rstrip() == _HEAD:
            has_head = True
        elif has_head and text.strip():
            if (found := _OPERATION.match(text)) is None:
                raise BadLineError(number, f"{text[:60]!r} is not `{_HEAD}`; write the file anew")
            line, latency = number, int(found["latency"]) / 1e6
            total += found["name"] == _ALL
            if found["name"].endswith(_FAILED):
                log.add_failure(number, int(found["start"]) / 1e6 + latency)
            elif found["name"] != _ALL:
                log.add(number, int(found["start"]) / 1e6 + latency, latency, found["name"].lower())
    if batches:
        return _of_batches(batches)
    reading = log.reading()
    if total:
        require_total(line, "operations", reading.operations or 0, total)
    return reading


def _add(batches: list[_Batch], number: int, text: str) -> None:
    """Add a line to the last batch, or to a new one where that has its operation."""
    if (found := _LINE.match(text)) is None:
        raise BadLineError(number, f"is a line of an interval that cannot be read: {text[:80]!r}")
    name, takes, count = found["name"], float(found["takes"]), int(found["count"])
    if not batches or name in batches[-1].counts:
        before = batches[-1].counts if batches else {}
        if count < before.get(name, 0):
            what = f"counts {count:,} of {name}, after {before[name]:,} before"
            raise BadLineError(number, f"{what}; give the output of one run at a time")
        batches.append(_Batch(number, takes))
    batch = batches[-1]
    # The clock of an operation begins with the first one; that of all is the longest.
    batch.line, batch.takes = number, max(batch.takes, takes)
    batch.counts[name] = count
    if name != _ALL and not name.endswith(_FAILED):
        batch.means[name] = (int(found["mean"]) + 0.5) / 1e6
        batch.longest = max(batch.longest, int(found["max"]) / 1e6)


def _of_batches(batches: Sequence[_Batch]) -> Reading:
    for earlier, later in pairwise(batches):
        # An operation whose line was lost has done no more than before, as far as is known.
        later.counts = earlier.counts | later.counts
        later.means = earlier.means | later.means
    last = batches[-1]
    if _ALL in last.counts:
        require_total(last.line, "operations", last.count(failed=False), last.counts[_ALL])
    usual = median([later.takes - earlier.takes for earlier, later in pairwise(batches)] or [0.0])
    # Without its beginning, the first figures of a file are those of an unknown time.
    if batches[0].takes <= ABSENT_INTERVALS * usual:
        batches = [_Batch(0, 0.0), *batches]
    said = [
        Progress(later.line, later.takes, _numbers(earlier, later))
        for earlier, later in pairwise(batches)
        # The last interval is printed twice where the run ends with it.
        if later.takes > earlier.takes
    ]
    rows = rows_of_intervals(said)
    inexact = sum(
        not any(name.endswith("mean") for name in row.numbers) and row.numbers[RATE_COLUMN] > 0 for row in rows
    )
    remark = "Percentiles of go-ycsb are since the start and are left out; means are those of each interval."
    if inexact:
        remark += f" The means of {inexact:,} intervals are not known to {100 * _INEXACT:g} %; {_EXACT}."
    rise = next((each for each in batches if each.longest == last.longest), last)
    zero = said[0].end - rows[0].numbers[END_COLUMN] if rows else 0.0
    slowest = Slowest(last.longest, max(0.0, rise.takes - zero))
    return Reading(rows, operations=last.count(failed=False), slowest=slowest, remark=remark)


def _numbers(earlier: _Batch, later: _Batch) -> dict[str, float]:
    """Figures of the interval between two batches."""
    completed, failed = (later.count(failed=each) - earlier.count(failed=each) for each in (False, True))
    numbers = {ERRORS_COLUMN: float(failed), RATE_COLUMN: completed / (later.takes - earlier.takes)}
    for name, mean in later.means.items():
        before, after = earlier.counts.get(name, 0), later.counts[name]
        if after <= before:
            continue
        value = max(0.0, (after * mean - before * earlier.means.get(name, 0.0)) / (after - before))
        error = 0.5e-6 * (after + before) / (after - before)
        if error <= _INEXACT * value:
            numbers[f"{name.lower()}.mean"] = value
    return numbers
