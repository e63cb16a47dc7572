"""Read kafka-producer-perf-test of Kafka 0.9 to 4: a line for each interval of about five seconds.

Lines have no time: the length of an interval is its records divided by its rate. A blocked producer prints nothing
until a record is acknowledged, so its next interval is longer. Exceptions between the lines are records that failed.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from cliffwatch.analysis.table import ERRORS_COLUMN
from cliffwatch.labs.outputs.rows import (
    RATE_COLUMN,
    BadLineError,
    Progress,
    Reading,
    require_total,
    rows_of_progress,
)

_NUMBER = r"(\d{1,15}(?:[.,]\d{1,9})?|NaN)"
#: Up to Kafka 2.x the maximum has no unit.
_LINE = re.compile(
    rf"{_NUMBER} records sent, {_NUMBER} records/sec \({_NUMBER} MB/sec\), {_NUMBER} ms avg latency,"
    rf" {_NUMBER}(?: ms)? max(?:imum)? latency(?P<whole>.*\b50th)?"
)
_EXCEPTION = re.compile(r"org\.apache\.kafka\.common\.errors\.\w+(?:: Expiring (?P<expired>\d{1,9}) record\(s\))?")
#: A rate that is printed as 0.0 is below this.
_RATE_LEAST = 0.05
_USUAL_SECONDS = 5.0
#: Records of so many intervals may be in no line: those sent after the last one.
_INTERVALS_UNPRINTED = 2


@dataclass(frozen=True, slots=True)
class _Interval:
    line: int
    records: int
    rate: float
    mean: float
    longest: float
    failed: int

    @property
    def seconds(self) -> float:
        """Length; of an interval without a rate, the least that it can have been; 0 where that is not known."""
        if self.rate > 0:
            return self.records / self.rate
        return max(self.longest, self.records / _RATE_LEAST) if self.records else 0.0


def recognises(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of this format."""
    return any(_LINE.search(line) for line in head)


def read(lines: Iterable[str]) -> Reading:
    """Read producer-perf-test's output. Raises BadLineError for lines of two runs, and where the total differs."""
    found: list[_Interval] = []
    exceptions: Counter[str] = Counter()
    total: tuple[int, int] | None = None
    for number, line in enumerate(lines, start=1):
        if _EXCEPTION.match(line):
            exceptions[line.strip()] += 1
        if (read := _LINE.search(line)) is None:
            continue
        records, rate, _, mean, longest = (_number(text) for text in read.groups()[:5])
        # The line with percentiles covers the whole test.
        if read["whole"]:
            total = total or (number, round(records))
            continue
        if total is not None:
            what = f"is after line {total[0]}, the end of a run"
            raise BadLineError(number, f"{what}; give the output of one run at a time")
        failed = _failed(exceptions)
        exceptions.clear()
        found.append(_Interval(number, round(records), rate, mean / 1000, longest / 1000, failed))
    if found and exceptions:
        found[-1] = replace(found[-1], failed=found[-1].failed + _failed(exceptions))
    count = sum(each.records for each in found)
    if total is not None and found:
        unprinted = _INTERVALS_UNPRINTED * max(each.records for each in found)
        require_total(total[0], "records", count, total[1], unprinted)
    return Reading(rows_of_progress(_progress(found)), operations=count, remark=_remark(found))


def _progress(found: list[_Interval]) -> list[Progress]:
    known = [each.seconds for each in found if each.rate > 0]
    usual, end = median(known) if known else _USUAL_SECONDS, 0.0
    said = []
    for each in found:
        seconds = each.seconds or usual
        end += seconds
        numbers = {RATE_COLUMN: each.records / seconds, "mean": each.mean, "max": each.longest}
        said.append(Progress(each.line, end, numbers | {ERRORS_COLUMN: float(each.failed)}))
    return said


def _remark(found: list[_Interval]) -> str:
    without = next((each for each in found if not each.rate > 0), None)
    return f"Line {without.line} has a rate of 0: its length is the least that it can have been." if without else ""


def _failed(exceptions: Counter[str]) -> int:
    """Number of records that failed. Each one's callback prints its exception, so that a batch of N records that
    expired prints `Expiring N record(s)` N times; fewer such lines are counted as batches."""
    count = 0
    for text, times in exceptions.items():
        found = _EXCEPTION.match(text)
        batch = int(found["expired"] or 1) if found else 1
        count += times if times >= batch else times * batch
    return count


def _number(text: str) -> float:
    """Parse a number as Java prints it in any locale: `24691.2` or `24691,2`. NaN, of no records, is 0."""
    value = float(text.replace(",", "."))
    return 0.0 if math.isnan(value) else value
