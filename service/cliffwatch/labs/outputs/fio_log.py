"""Read fio's latency logs (`write_lat_log`): a line for each I/O, or an average for each `log_avg_msec`.

Lines are `milliseconds, latency, direction, block size, offset, …` (fio's HOWTO, "Log File Formats"). An average has
the block size 0. fio writes nothing until an I/O ends, so in a log of averages a stall is no row, but the longest gap
between rows.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from statistics import median

from cliffwatch.analysis.stalls import Slowest
from cliffwatch.labs.outputs.operations import OperationLog
from cliffwatch.labs.outputs.rows import BadLineError, Progress, Reading, rows_of_progress
from cliffwatch.model.operation import Operation

_DIRECTIONS = {"0": Operation.READ.value, "1": Operation.WRITE.value, "2": "trim"}
_FIELDS_LEAST = 4
_DIGITS_MOST = 15
#: A line of a histogram log (`write_hist_log`) has 1,216 fields or more.
_FIELDS_MOST = 10
#: Least share of intervals that have an average, in the log of a job that does not pause by itself.
_WITHOUT_PAUSES = 0.95
#: Other logs that fio writes beside those of latencies, by a part of their names: what they hold, and the part of the
#: log to give. One of submission latencies is written in the same lines, and a slow device is not in it.
_OTHER_LOGS = {
    "_slat.": ("submission latencies, without the time that the device takes", "_lat."),
    "_bw.": ("bandwidth", "_lat."),
    "_iops.": ("IOPS", "_lat."),
    "_hist.": ("histograms", "."),
}
_LATENCIES = ("_lat.", "_clat.")
_LINE = re.compile(r"\d{1,15}, *\d{1,15}, *[012], *\d{1,15}(?:, *[0-9a-fx]+)*\s*")


@dataclass(frozen=True, slots=True)
class _Average:
    line: int
    end: float
    column: str
    seconds: float


def looks_like(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of some log of fio: those of latencies and of bandwidth look alike."""
    lines = [line for line in head if line.strip()]
    return bool(lines) and all(_LINE.fullmatch(line) for line in lines)


def is_named(name: str) -> bool:
    """Whether a file has the name of one of fio's logs, which says what it holds."""
    return any(mark in PurePath(name).name for mark in (*_LATENCIES, *_OTHER_LOGS))


def read(lines: Iterable[str], name: str, unit_seconds: float) -> Reading:
    """Read a latency log with latencies in `unit_seconds`. Raises BadLineError for a line of another format."""
    own = PurePath(name).name
    for mark, (what, right) in _OTHER_LOGS.items():
        if mark in own:
            raise BadLineError(0, f"is fio's log of {what}; give the one of latencies, {own.replace(mark, right)}")
    log = OperationLog()
    averages: list[_Average] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        milliseconds, value, direction, size = _fields(number, line)
        seconds = value * unit_seconds
        if size:
            log.add(number, milliseconds / 1000, seconds, direction)
        else:
            averages.append(_Average(number, milliseconds / 1000, f"{direction}.mean", seconds))
    return _of_averages(averages) if averages else log.reading()


def _fields(number: int, line: str) -> tuple[int, int, str, int]:
    fields = [field.strip() for field in line.split(",")]
    if len(fields) > _FIELDS_MOST:
        raise BadLineError(number, "is of a log of histograms; give the one of latencies, whose name has _lat or _clat")
    try:
        if len(fields) < _FIELDS_LEAST or any(len(field) > _DIGITS_MOST for field in fields[:_FIELDS_LEAST]):
            raise ValueError
        return int(fields[0]), int(fields[1]), _DIRECTIONS[fields[2]], int(fields[3])
    except (KeyError, ValueError) as error:
        wanted = "milliseconds, latency, direction (0, 1 or 2), block size"
        raise BadLineError(number, f"{line.strip()[:60]!r} is not `{wanted}`") from error


def _of_averages(averages: list[_Average]) -> Reading:
    """Make one row of all averages in the same interval: for each direction the mean over all jobs."""
    by_column: dict[str, list[float]] = defaultdict(list)
    for each in averages:
        by_column[each.column].append(each.end)
    steps = [later - earlier for ends in by_column.values() for earlier, later in pairwise(ends) if later > earlier]
    length = median(steps or [1.0])
    found: dict[int, list[_Average]] = defaultdict(list)
    for each in averages:
        found[round(each.end / length)].append(each)
    said = []
    for place in sorted(found):
        columns: dict[str, list[float]] = defaultdict(list)
        for each in found[place]:
            columns[each.column].append(each.seconds)
        numbers = {column: sum(values) / len(values) for column, values in columns.items()}
        said.append(Progress(found[place][0].line, max(each.end for each in found[place]), numbers))
    remark = f"The log has the averages of {length:g} s and no rate: what was completed is not known."
    return Reading(rows_of_progress(said), slowest=_slowest(said, length), remark=remark)


def _slowest(said: list[Progress], length: float) -> Slowest | None:
    """The I/O that was under way in the longest gap between averages. None if the gap is two intervals or less, or the
    job pauses by itself."""
    spans = [(earlier.end, later.end) for earlier, later in pairwise(said)]
    missing = sum(max(0, round((end - start) / length) - 1) > 0 for start, end in spans)
    if not spans or missing > (1 - _WITHOUT_PAUSES) * len(spans):
        return None
    start, end = max(spans, key=lambda span: span[1] - span[0])
    # The last average before the gap may have been written up to one interval before the last I/O ended.
    return Slowest(end - start - length, end, at_least=True) if end - start > 2 * length else None
