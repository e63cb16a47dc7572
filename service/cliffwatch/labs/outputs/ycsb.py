"""Read YCSB: status lines (`-s`, on standard error), or the means of `-p measurementtype=timeseries`.

Latencies are in microseconds, over the line's own interval. `READ-FAILED` are operations that failed. The totals at the
end are on standard output.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median

from cliffwatch.analysis.table import END_COLUMN, ERRORS_COLUMN, Row
from cliffwatch.labs.outputs.rows import (
    ABSENT_INTERVALS,
    RATE_COLUMN,
    BadLineError,
    Progress,
    Reading,
    known,
    quantile_column,
    require_total,
    rows_of_intervals,
)

_BEGINNING = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3} \d{1,9} sec:")
#: Java prints the rate in the locale's digits: `392.79` or `392,79`, and `∞` in a first interval of no length.
_STATUS = re.compile(
    r"(?P<day>\S+) (?P<time>\d\d:\d\d:\d\d):(?P<milli>\d{3}) (?P<seconds>\d{1,9}) sec: (?P<operations>\d{1,15})"
    r" operations;(?: (?P<rate>\d{1,15}(?:[.,]\d{1,9})?|∞) current ops/sec;)?"
    r"(?: est completion in [\w ]*)?(?P<rest> *(?:\[[^\]]*\] *)*)$"
)
_MEASURED = re.compile(r"\[(?P<name>[\w-]+):? (?P<values>[^\]]*)\]")
_VALUE = re.compile(
    r"(?P<key>Count|Max|Avg|AverageLatency\(us\)|\d{1,2}(?:\.\d{1,4})?)=(?P<value>\d{1,19}(?:[.,]\d{1,9})?)"
)
_TOTAL = re.compile(r"\[(?P<name>[\w-]+)\], Operations, (?P<count>\d{1,15})\s*$")
#: A mean of a time series, which Java prints as a double; counts of `measurementtype=histogram` have no point.
_MEAN = re.compile(r"\[(?P<name>[\w-]+)\], (?P<milliseconds>\d{1,12}), (?P<mean>\d{1,15}\.\d{1,20}(?:E\d)?)\s*$")
_COLUMNS = {"Avg": "mean", "AverageLatency(us)": "mean", "Max": "max"}
_TWO_STEPS = "READ-MODIFY-WRITE"
_NOT_OPERATIONS = ("CLEANUP", "INIT", "OVERALL")
#: Change of the wall clock against the seconds since the start by which it was set; the seconds are whole ones.
_CLOCK_SET_SECONDS = 1.5


@dataclass(slots=True)
class _Status:
    """Status line: seconds by its clock, operations since the start, the rate of its interval, operations by name."""

    line: int
    end: float
    operations: int
    rate: float | None
    counts: Counter[str] = field(default_factory=Counter)
    latencies: dict[str, float] = field(default_factory=dict)

    @property
    def failed(self) -> int:
        """Number of operations that failed."""
        return sum(count for name, count in self.counts.items() if _is_failure(name))


def recognises(head: Sequence[str]) -> bool:
    """Whether the first lines of a file are of this format."""
    return any(_BEGINNING.match(line) or _MEAN.match(line) for line in head)


def read(lines: Iterable[str]) -> Reading:
    """Read YCSB's output. Raises BadLineError for a status line that cannot be read, and where a total differs."""
    found: list[_Status] = []
    means: dict[float, dict[str, float]] = {}
    totals: dict[str, tuple[int, int]] = {}
    base: float | None = None
    for number, line in enumerate(lines, start=1):
        if _BEGINNING.match(line):
            status, base = _status(number, line, base)
            found.append(status)
        elif total := _TOTAL.match(line):
            totals[total["name"]] = (number, int(total["count"]))
        elif (mean := _MEAN.match(line)) and mean["name"] not in _NOT_OPERATIONS:
            column = f"{mean['name'].lower()}.mean"
            means.setdefault(int(mean["milliseconds"]) / 1000, {})[column] = float(mean["mean"]) / 1e6
    if not found:
        return _of_means(means)
    _require_totals(found, totals)
    said = [Progress(each.line, each.end, _numbers(each)) for each in found if each.rate is not None]
    rows = rows_of_intervals(said)
    for row in rows:
        # Those that failed are in the stated rate.
        failed = row.numbers.get(ERRORS_COLUMN, 0.0)
        row.numbers[RATE_COLUMN] = max(0.0, row.numbers[RATE_COLUMN] - failed / (row.numbers[END_COLUMN] - row.at))
    return Reading(rows, operations=found[-1].operations - sum(each.failed for each in found))


def _status(number: int, line: str, base: float | None) -> tuple[_Status, float]:
    """Parse a status line; also the wall clock's zero, which changes with the clock, as in a summer night."""
    read = _STATUS.match(line)
    if read is None:
        raise BadLineError(number, f"is a status line that cannot be read: {line[:80]!r}; remove it if it was cut off")
    try:
        wall = datetime.fromisoformat(f"{read['day']}T{read['time']}.{read['milli']}").replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise BadLineError(number, f"has no time that can be read: {line[:40]!r} ({error})") from error
    seconds = int(read["seconds"])
    if base is None or abs(wall - seconds - base) > _CLOCK_SET_SECONDS:
        base = wall - seconds
    rate = None if read["rate"] in (None, "∞") else _number(read["rate"])
    status = _Status(number, wall - base, int(read["operations"]), rate)
    for measured in _MEASURED.finditer(read["rest"]):
        values = {value["key"]: _number(value["value"]) for value in _VALUE.finditer(measured["values"])}
        name = measured["name"]
        status.counts[name] += round(values.get("Count", 0.0))
        if name not in _NOT_OPERATIONS and not _is_failure(name) and values.pop("Count", 1.0):
            columns = {key: _COLUMNS.get(key) or quantile_column(float(key)) for key in values}
            status.latencies |= {f"{name.lower()}.{columns[key]}": value / 1e6 for key, value in values.items()}
    return status, base


def _is_failure(name: str) -> bool:
    """Whether a name is that of failures: READ-FAILED, or READ-NOT_FOUND with `reportlatencyforeacherror`."""
    return "-" in name.removeprefix("Intended-").replace(_TWO_STEPS, "") and not name.startswith("Intended-")


def _numbers(status: _Status) -> dict[str, float]:
    return known(status.latencies) | {RATE_COLUMN: status.rate or 0.0, ERRORS_COLUMN: float(status.failed)}


def _require_totals(found: list[_Status], totals: dict[str, tuple[int, int]]) -> None:
    """Raise BadLineError where rates differ from the operations since the start, or counts from the totals."""
    spans = [(earlier, later, later.end - earlier.end) for earlier, later in pairwise(found) if later.rate is not None]
    usual = median([seconds for *_, seconds in spans] or [0.0])
    near = [(one, other, seconds) for one, other, seconds in spans if seconds <= ABSENT_INTERVALS * usual]
    by_rate = sum((later.rate or 0.0) * seconds for _, later, seconds in near)
    require_total(
        found[-1].line, "operations", by_rate, sum(later.operations - one.operations for one, later, _ in near)
    )
    counts = sum((each.counts for each in found), Counter[str]())
    for name, (line, total) in totals.items():
        if counts[name] and name not in _NOT_OPERATIONS:
            require_total(line, name, counts[name], total)


def _of_means(means: dict[float, dict[str, float]]) -> Reading:
    starts = sorted(means)
    length = median([later - earlier for earlier, later in pairwise(starts)] or [1.0])
    rows = [Row(start, {}, means[start] | {END_COLUMN: start + length}) for start in starts]
    remark = "A time series of YCSB has means and no rate, and no line where nothing was completed; `-s` prints both."
    return Reading(rows, remark=remark if rows else "")


def _number(text: str) -> float:
    return float(text.replace(",", "."))
