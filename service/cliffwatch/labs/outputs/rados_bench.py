"""Read `rados bench`: a line for each second, with operations in flight.

Finished operations and the average latency are since the start, and are converted to the second's own by differences;
the last latency is of one operation, and is left out.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cliffwatch.analysis.stalls import Slowest
from cliffwatch.analysis.table import END_COLUMN, OLDEST_COLUMN
from cliffwatch.labs.outputs.rows import (
    NUMBER,
    RATE_COLUMN,
    BadLineError,
    Progress,
    Reading,
    require_total,
    rows_of_intervals,
)

_HEAD = re.compile(r" *sec Cur ops +started +finished +avg MB/s +cur MB/s +last lat")
_BEGINNING = re.compile(r" *\d{1,9} +\d{1,9} +\d")
_LINE = re.compile(
    rf" *(?P<second>\d{{1,9}}) +(?P<current>\d{{1,9}}) +(?P<started>\d{{1,15}}) +(?P<finished>\d{{1,15}})"
    rf" +\S+ +\S+ +(?:-|{NUMBER}|[\d.]+e-\d+) +(?P<mean>{NUMBER}|[\d.]+e-\d+)\s*$"
)
_TOTAL = re.compile(r"Total (?:writes|reads) made: +(?P<count>\d{1,15})")
_LONGEST = re.compile(rf"Max latency(?:\(s\))?: +(?P<seconds>{NUMBER})")
#: Half of the last of six digits that an average has, as a share of it; and the most that a mean may be off by.
_ROUNDING, _INEXACT = 5e-6, 0.05


@dataclass(frozen=True, slots=True)
class _Second:
    """Line: seconds since the start, operations in flight, finished since the start, their average latency."""

    line: int
    end: int
    current: int
    finished: int
    mean: float


def recognises(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of this format."""
    return any(_HEAD.match(line) for line in head)


def read(lines: Iterable[str]) -> Reading:
    """Read the output. Raises BadLineError for a line that cannot be read, and where the total differs."""
    found: list[_Second] = []
    total: tuple[int, int] | None = None
    longest, has_head = 0.0, False
    for number, line in enumerate(lines, start=1):
        has_head = has_head or _HEAD.match(line) is not None
        if has_head and _BEGINNING.match(line):
            found.append(_second(number, line))
        elif made := _TOTAL.match(line):
            total, has_head = (number, int(made["count"])), False
        elif stated := _LONGEST.match(line):
            longest = float(stated["seconds"])
    said = [Progress(later.line, later.end, _numbers(earlier, later)) for earlier, later in pairwise(found)]
    rows = rows_of_intervals(said)
    if not rows:
        return Reading([])
    if total is not None:
        most = max(later.finished - earlier.finished for earlier, later in pairwise(found))
        require_total(total[0], "operations", found[-1].finished, total[1], 2 * most + found[-1].current)
    # The slowest one ended where the mean is highest: the line of its end states no time.
    highest = max(rows, key=lambda row: row.numbers.get("mean", 0.0))
    slowest = Slowest(longest, highest.numbers[END_COLUMN]) if longest else None
    return Reading(rows, operations=found[-1].finished - found[0].finished, slowest=slowest)


def _second(number: int, line: str) -> _Second:
    if (read := _LINE.match(line)) is None:
        raise BadLineError(number, f"is a line of a second that cannot be read: {line[:80]!r}")
    current, started, finished = (int(read[name]) for name in ("current", "started", "finished"))
    if started != finished + current:
        what = f"has {started:,} operations started, and {finished:,} finished and {current:,} in flight"
        raise BadLineError(number, f"{what}; give the output as it is")
    return _Second(number, int(read["second"]), current, finished, float(read["mean"]))


def _numbers(earlier: _Second, later: _Second) -> dict[str, float]:
    """Figures of the time between two lines. Raises BadLineError where operations are taken back."""
    count = later.finished - earlier.finished
    if count < 0 or later.end <= earlier.end:
        what = f"has {later.finished:,} operations at {later.end} s, after {earlier.finished:,} at {earlier.end} s"
        raise BadLineError(later.line, f"{what}; give the output of one run at a time")
    numbers = {RATE_COLUMN: count / (later.end - earlier.end)}
    if count:
        total, before = later.mean * later.finished, earlier.mean * earlier.finished
        mean = (total - before) / count
        if mean > 0 and _ROUNDING * (total + before) / count <= _INEXACT * mean:
            numbers["mean"] = mean
    elif not later.current:
        numbers[OLDEST_COLUMN] = 0.0
    return numbers
