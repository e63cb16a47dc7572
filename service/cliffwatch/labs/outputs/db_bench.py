"""Read RocksDB's db_bench with `--stats_interval_seconds`: a line for each interval of each thread.

A thread prints its line when an operation ends, so that intervals differ in length and threads print apart from each
other. Operations of an interval are spread evenly over it, and all threads are added up in windows of the usual length.
The mean is the time of a thread for one operation, with what `--benchmark_write_rate_limit` makes it wait.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from cliffwatch.analysis.stalls import Slowest
from cliffwatch.analysis.table import END_COLUMN, Row
from cliffwatch.labs.outputs.rows import NUMBER, RATE_COLUMN, BadLineError, Reading, require_total

_BEGINNING = re.compile(r"\d{4}/\d\d/\d\d-\d\d:\d\d:\d\d +\.\.\. thread \d+: ")
_LINE = re.compile(
    rf"\S+ +\.\.\. thread (?P<thread>\d{{1,6}}): \((?P<operations>\d{{1,15}}),(?P<total>\d{{1,15}})\) ops and"
    rf" \({NUMBER},{NUMBER}\) ops/second in \((?P<seconds>{NUMBER}),(?P<end>{NUMBER})\) seconds"
)
_END = re.compile(r"\w+ +: +.* (?P<count>\d{1,15}) operations;")
_WINDOWS_MOST = 10_000_000
#: Least share of a window that the intervals of all threads cover.
_COVERED = 0.99


@dataclass(frozen=True, slots=True)
class _Interval:
    """Interval of a thread, in seconds since its start: its end and length, operations in it and since the start."""

    line: int
    end: float
    seconds: float
    operations: int
    total: int


def recognises(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of this format."""
    return any(_BEGINNING.match(line) for line in head)


def read(lines: Iterable[str]) -> Reading:
    """Read db_bench's output. Raises BadLineError for a line that cannot be read, and where the total differs."""
    threads: dict[int, list[_Interval]] = defaultdict(list)
    total: tuple[int, int] | None = None
    for number, line in enumerate(lines, start=1):
        if _BEGINNING.match(line):
            thread, interval = _interval(number, line)
            before = threads[thread]
            if before and interval.end <= before[-1].end:
                what = f"is at {interval.end:g} s of thread {thread}, after one at {before[-1].end:g} s"
                raise BadLineError(number, f"{what}; give the output of one of `--benchmarks` at a time")
            before.append(interval)
        elif found := _END.match(line):
            total = (number, int(found["count"]))
    if not threads:
        return Reading([])
    done = sum(intervals[-1].total for intervals in threads.values())
    counted = sum(each.operations for intervals in threads.values() for each in intervals)
    last_line = max(intervals[-1].line for intervals in threads.values())
    require_total(last_line, "operations", counted, done)
    if total is not None:
        unprinted = sum(2 * max(each.operations for each in intervals) for intervals in threads.values())
        require_total(total[0], "operations", done, total[1], unprinted)
    every = [each for intervals in threads.values() for each in intervals]
    means = [Slowest(each.seconds / each.operations, each.end, at_least=True) for each in every if each.operations]
    slowest = max(means, key=lambda one: one.seconds, default=None)
    remark = f"The intervals of {len(threads)} threads were added up." if len(threads) > 1 else ""
    return Reading(_rows(every, len(threads)), operations=done, slowest=slowest, remark=remark)


def _interval(number: int, line: str) -> tuple[int, _Interval]:
    if (found := _LINE.match(line)) is None:
        raise BadLineError(number, f"is a line of a thread that cannot be read: {line[:80]!r}")
    seconds, end = float(found["seconds"]), float(found["end"])
    if not 0 < seconds <= end:
        raise BadLineError(number, f"is of an interval of {seconds:g} s that ends {end:g} s after the start")
    return int(found["thread"]), _Interval(number, end, seconds, int(found["operations"]), int(found["total"]))


def _rows(intervals: Sequence[_Interval], threads: int) -> list[Row]:
    """Windows that the intervals of all threads cover; where a thread's lines are absent there is a gap."""
    length = median(each.seconds for each in intervals)
    last = max(intervals, key=lambda each: each.end)
    if last.end / length > _WINDOWS_MOST:
        raise BadLineError(last.line, f"is {last.end:g} s after the start, too far for intervals of {length:g} s")
    done, covered = defaultdict[int, float](float), defaultdict[int, float](float)
    for each in intervals:
        start = each.end - each.seconds
        for place in range(int(start / length), int(each.end / length) + 1):
            shared = min(each.end, (place + 1) * length) - max(start, place * length)
            if shared > 0:
                covered[place] += shared
                done[place] += each.operations * shared / each.seconds
    rows = []
    for place in sorted(covered):
        if covered[place] >= _COVERED * threads * length:
            numbers = {END_COLUMN: (place + 1) * length, RATE_COLUMN: done[place] / length}
            if done[place] > 0:
                numbers["mean"] = covered[place] / done[place]
            rows.append(Row(place * length, {}, numbers))
    return rows
