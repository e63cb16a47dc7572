"""Read sysbench: lines of `--report-interval`, for databases, fileio, cpu and other tests (release 1.0 and later)."""

import re
from collections.abc import Iterable, Sequence

from cliffwatch.analysis.table import END_COLUMN, ERRORS_COLUMN
from cliffwatch.labs.outputs.rows import (
    NUMBER,
    RATE_COLUMN,
    BadLineError,
    Progress,
    Reading,
    quantile_column,
    require_rates,
    rows_of_progress,
)

_LINE = re.compile(rf"\[ *(?P<end>{NUMBER})s *\] (?P<rest>thds|reads)\b")
_LATENCY = re.compile(rf"lat(?:ency)? \(ms, ?(?P<percent>{NUMBER})%\): (?P<milliseconds>{NUMBER}|nan)")
_EVENTS = re.compile(rf"\b(?:tps|eps): (?P<rate>{NUMBER})")
_FAILED = re.compile(rf"\berr/s:? (?P<rate>{NUMBER})")
_FILES = re.compile(
    rf"reads: (?P<read>{NUMBER}) MiB/s,? writes: (?P<written>{NUMBER}) MiB/s,? fsyncs: (?P<synced>{NUMBER})/s"
)
_TOTAL = re.compile(r" *total number of events: +(?P<count>\d{1,15})")
_BLOCK = re.compile(rf"Block size (?P<size>{NUMBER})(?P<unit>[KMG]?i?B)")
_UNITS = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
#: The default of `--file-block-size`.
_BLOCK_BYTES = 16384.0


def recognises(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of this format."""
    return any(_LINE.match(line) for line in head)


def read(lines: Iterable[str]) -> Reading:
    """Read sysbench's output. Raises BadLineError for a line that begins like the format but cannot be read."""
    said: list[Progress] = []
    total: tuple[int, int] | None = None
    block_bytes, has_files = _BLOCK_BYTES, False
    for number, line in enumerate(lines, start=1):
        if found := _BLOCK.match(line):
            block_bytes = float(found["size"]) * _UNITS.get(found["unit"], 1)
        if found := _TOTAL.match(line):
            total = (number, int(found["count"]))
        if found := _LINE.match(line):
            said.append(Progress(number, float(found["end"]), _numbers(number, line, block_bytes)))
            has_files = has_files or found["rest"] == "reads"
    rows = rows_of_progress(said)
    # A test of files counts blocks here, from rounded MiB/s, and events there.
    if total is not None and rows and not has_files:
        require_rates(rows, *total, "events")
    for row in rows:
        # It prints them per second.
        seconds = row.numbers[END_COLUMN] - row.at
        row.numbers[ERRORS_COLUMN] = round(row.numbers.get(ERRORS_COLUMN, 0.0) * seconds)
    return Reading(rows)


def _numbers(number: int, line: str, block_bytes: float) -> dict[str, float]:
    latency, files, events, failed = (each.search(line) for each in (_LATENCY, _FILES, _EVENTS, _FAILED))
    if latency is None or (files is None and events is None):
        raise BadLineError(number, f"is a report that cannot be read: {line[:100]!r}")
    if files is not None:
        blocks = (float(files["read"]) + float(files["written"])) * 1024**2 / block_bytes
        numbers = {RATE_COLUMN: blocks + float(files["synced"])}
    else:
        assert events is not None, "refused above"
        numbers = {RATE_COLUMN: float(events["rate"])}
    percent = float(latency["percent"])
    # With --percentile=0 no percentile is measured, with 100 it is the maximum.
    column = "max" if percent == 100 else quantile_column(percent)
    if percent > 0:
        numbers[column] = float(latency["milliseconds"]) / 1000
    return numbers | ({ERRORS_COLUMN: float(failed["rate"])} if failed is not None else {})
