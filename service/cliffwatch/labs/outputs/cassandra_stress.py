"""Read cassandra-stress: a line for each interval (`-log interval=1`), of all operations and of each kind of a mix.

Columns are known by the header. Latencies are in milliseconds; `total ops` is since the start, everything else of the
interval. Times have one decimal, and rates none.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cliffwatch.analysis.table import END_COLUMN, ERRORS_COLUMN
from cliffwatch.labs.outputs.rows import (
    RATE_COLUMN,
    BadLineError,
    Progress,
    Reading,
    known,
    require_total,
    rows_of_intervals,
)

_HEAD = re.compile(r" *(?:type +)?total ops *,.*\bop/s\b.*\btime\b")
_ROW = re.compile(r" *(?:[A-Za-z][\w-]*|\d{1,15}) *,")
_LATENCIES = {"mean": "mean", "med": "p50", ".95": "p95", ".99": "p99", ".999": "p999", "max": "max"}
_NEEDED = ("total ops", "op/s", "pk/s", "time")
_TOTAL = re.compile(r" *Total (?P<what>partitions|errors) +: +(?P<count>[\d,]{1,20})")
_ALL = "total"
#: Rounding of a rate, and of the time between two lines.
_RATE_ROUNDING, _TIME_ROUNDING = 0.5, 0.1


@dataclass(frozen=True, slots=True)
class _Interval:
    """Line of all operations: seconds since the start, operations since then, rates, latencies of all kinds."""

    line: int
    end: float
    operations: float
    rate: float
    partitions: float
    errors: float
    latencies: dict[str, float]


def recognises(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of this format."""
    return any(_HEAD.match(line) for line in head)


def read(lines: Iterable[str]) -> Reading:
    """Read cassandra-stress' output. Raises BadLineError for a line that cannot be read, and where totals differ."""
    names: list[str] = []
    found: list[_Interval] = []
    kinds: dict[str, float] = {}
    totals: dict[str, tuple[int, int]] = {}
    for number, line in enumerate(lines, start=1):
        if _HEAD.match(line):
            names = [name.strip() for name in re.sub(r"^ *type +", "type,", line).split(",")]
            if missing := [name for name in _NEEDED if name not in names]:
                raise BadLineError(number, f"is a header without {', '.join(missing)}; give the output as it is")
        elif total := _TOTAL.match(line):
            totals[total["what"]] = (number, int(total["count"].replace(",", "")))
        elif names and _ROW.match(line):
            kind, fields = _fields(number, line, names)
            prefix = "" if kind == _ALL else f"{kind.lower()}."
            latencies = {f"{prefix}{_LATENCIES[key]}": fields[key] / 1000 for key in _LATENCIES if key in fields}
            if prefix:
                kinds |= latencies
                continue
            rates = (fields["op/s"], fields["pk/s"], fields.get("errors", 0.0))
            found.append(_Interval(number, fields["time"], fields["total ops"], *rates, kinds | latencies))
            kinds = {}
        elif not line.strip() and found:
            names = []
    return _reading(found, totals)


def _fields(number: int, line: str, names: list[str]) -> tuple[str, dict[str, float]]:
    """Kind of operations of a line, and its figures by column."""
    values = [value.strip() for value in line.split(",")]
    kind = values[0] if names[0] == "type" else _ALL
    try:
        if len(values) != len(names):
            raise ValueError
        return kind, {name: float(value) for name, value in zip(names, values, strict=True) if name != "type"}
    except ValueError as error:
        what = f"{line.strip()[:60]!r} does not have the {len(names)} fields of the header"
        raise BadLineError(number, f"{what}; remove it if it was cut off") from error


def _reading(found: list[_Interval], totals: dict[str, tuple[int, int]]) -> Reading:
    said = [
        Progress(each.line, each.end, known(each.latencies) | {RATE_COLUMN: each.rate, ERRORS_COLUMN: each.errors})
        for each in found
    ]
    rows = rows_of_intervals(said)
    if not rows:
        return Reading([])
    starts = {row.numbers[END_COLUMN]: row.at for row in rows}
    zero = found[0].end - rows[0].numbers[END_COLUMN]
    by_rate, by_count = 0.0, 0.0
    for earlier, later in pairwise(found):
        seconds = later.end - earlier.end
        # Between lines that are absent, the rate of the later one is not that of all the time.
        if starts.get(later.end - zero, 0.0) <= earlier.end - zero:
            by_rate += later.rate * seconds
            by_count += later.operations - earlier.operations
    slack = 2 * _TIME_ROUNDING * max(each.rate for each in found) + _RATE_ROUNDING * rows[-1].numbers[END_COLUMN]
    _require(found[-1].line, "operations", by_rate, by_count, slack)
    partitions = sum(
        each.partitions * (row.numbers[END_COLUMN] - row.at) for each, row in zip(found, rows, strict=False)
    )
    errors, most_errors = sum(each.errors for each in found), max(each.errors for each in found)
    for what, read, more in (
        ("partitions", partitions, slack + 2 * max(each.partitions for each in found)),
        ("errors", errors, 2 * most_errors),
    ):
        if what in totals:
            _require(totals[what][0], what, read, totals[what][1], more)
    return Reading(rows, operations=round(found[-1].operations))


def _require(line: int, what: str, found: float, total: float, slack: float) -> None:
    """`require_total` for a count that is known to `slack`."""
    require_total(line, what, max(0.0, found - slack), total, 2 * slack)
