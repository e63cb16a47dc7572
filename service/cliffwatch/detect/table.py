"""A CSV that others made, as series and samples: one row a window, `elapsed_seconds` and any subset of the columns.

`elapsed_seconds` is the start of a row's window. Latencies are seconds; an empty field was not measured. A second
table, `elapsed_seconds,name`, tells of restarts and the like.
"""

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from cliffwatch.detect.finding import Notice, Role, Sample, Series
from cliffwatch.errors import Code, FieldFault, Problem

TIME_COLUMN = "elapsed_seconds"
NAME_COLUMN = "name"
PHASE_COLUMN = "phase"
#: The columns that mean something, in the order in which they are spoken of.
COLUMNS: dict[str, Series] = {
    "p50": Series("p50", Role.LATENCY, quantile=0.5),
    "p90": Series("p90", Role.LATENCY, quantile=0.9),
    "p99": Series("p99", Role.LATENCY, quantile=0.99),
    "p999": Series("p999", Role.LATENCY, quantile=0.999),
    "p9999": Series("p9999", Role.LATENCY, quantile=0.9999),
    "device_write_latency": Series("device_write_latency", Role.DEVICE_LATENCY),
    "queue_depth": Series("queue_depth", Role.QUEUE_DEPTH),
    "operations_per_second": Series("operations_per_second", Role.RATE),
}
#: The most faults that one refusal lists.
FAULTS_LIMIT = 20
#: A row stands for as long as the next one is away, but for no more than so many usual distances: beyond that is a gap.
GAP_DISTANCES = 2.5


@dataclass(frozen=True, slots=True)
class Table:
    """`samples` in order of time; `window_seconds` is the usual distance between rows."""

    series: tuple[Series, ...]
    samples: tuple[Sample, ...]
    window_seconds: float


def read_table(lines: Iterable[str], name: str = "table") -> Table:
    """Series and samples of a CSV. Raises Problem(bad_request) that names every field and line at fault.

    Values that cannot have been measured (negative, not finite) are faults; zero is a value. Rows have to be in order
    of time. A column `phase` may name the phase of each row.
    """
    faults: list[FieldFault] = []
    rows = csv.reader(lines)
    header = _header(rows, name, {TIME_COLUMN, PHASE_COLUMN, *COLUMNS})
    if not set(header) & {column for column, series in COLUMNS.items() if series.role is Role.LATENCY} and (
        "device_write_latency" not in header
    ):
        raise _refusal(name, [FieldFault(f"{name} line 1", "no column holds a latency; name one p50, p99, …")])
    times: list[float] = []
    values: list[dict[str, float]] = []
    phases: list[str | None] = []
    for number, row in _rows(rows):
        fields = _fields(header, row, f"{name} line {number}", faults)
        if fields is None:
            continue
        at = _number(fields.pop(TIME_COLUMN), f"{name} line {number}, {TIME_COLUMN}", faults, required=True)
        if at is None:
            continue
        if times and at <= times[-1]:
            faults.append(
                FieldFault(
                    f"{name} line {number}, {TIME_COLUMN}",
                    f"{at:g} is not after {times[-1]:g} of the row before; rows have to be in order of time",
                )
            )
            continue
        phases.append(fields.pop(PHASE_COLUMN, "").strip() or None)
        read = {
            column: _number(text, f"{name} line {number}, {column}", faults, required=False)
            for column, text in fields.items()
        }
        times.append(at)
        values.append({column: value for column, value in read.items() if value is not None})
    if faults:
        raise _refusal(name, faults)
    if len(times) < 2:
        raise _refusal(name, [FieldFault(name, "holds fewer than two rows; a series needs at least two windows")])
    return _table(header, times, values, phases)


def read_notices(lines: Iterable[str], name: str = "events") -> list[Notice]:
    """Known events of an `elapsed_seconds,name` CSV, in order of time. Raises Problem(bad_request)."""
    faults: list[FieldFault] = []
    rows = csv.reader(lines)
    header = _header(rows, name, {TIME_COLUMN, NAME_COLUMN})
    if NAME_COLUMN not in header:
        raise _refusal(name, [FieldFault(f"{name} line 1", f"has no column {NAME_COLUMN}; write {TIME_COLUMN},name")])
    notices = []
    for number, row in _rows(rows):
        fields = _fields(header, row, f"{name} line {number}", faults)
        if fields is None:
            continue
        at = _number(fields[TIME_COLUMN], f"{name} line {number}, {TIME_COLUMN}", faults, required=True)
        label = fields[NAME_COLUMN].strip()
        if not label:
            faults.append(FieldFault(f"{name} line {number}, {NAME_COLUMN}", "is empty; say what happened"))
        elif at is not None:
            notices.append(Notice(at, label))
    if faults:
        raise _refusal(name, faults)
    return sorted(notices, key=lambda notice: notice.at)


def _table(
    header: Sequence[str], times: Sequence[float], values: Sequence[dict[str, float]], phases: Sequence[str | None]
) -> Table:
    distances = [later - earlier for earlier, later in pairwise(times)]
    usual = median(distances)
    lengths = [distance if distance <= GAP_DISTANCES * usual else usual for distance in [*distances, usual]]
    samples = tuple(
        Sample(at, at + length, row, phase)
        for at, length, row, phase in zip(times, lengths, values, phases, strict=True)
    )
    series = tuple(series for column, series in COLUMNS.items() if column in header)
    return Table(series, samples, usual)


def _header(rows: Iterable[list[str]], name: str, known: set[str]) -> list[str]:
    header = [cell.strip().removeprefix("\ufeff") for cell in next(iter(rows), [])]
    place = f"{name} line 1"
    faults = [
        FieldFault(place, f"{cell!r} is no column that is known; there are {', '.join(sorted(known))}")
        for cell in header
        if cell not in known
    ]
    if not header or TIME_COLUMN not in header:
        faults.append(FieldFault(place, f"has no column {TIME_COLUMN}; the first line names the columns"))
    faults += [FieldFault(place, f"{cell!r} stands twice") for cell in set(header) if header.count(cell) > 1]
    if faults:
        raise _refusal(name, faults)
    return header


def _rows(rows: Iterable[list[str]]) -> Iterable[tuple[int, list[str]]]:
    for number, row in enumerate(rows, start=2):
        if row and any(cell.strip() for cell in row):
            yield number, row


def _fields(header: Sequence[str], row: Sequence[str], place: str, faults: list[FieldFault]) -> dict[str, str] | None:
    if len(row) != len(header):
        faults.append(FieldFault(place, f"has {len(row)} fields where the first line names {len(header)}"))
        return None
    return dict(zip(header, row, strict=True))


def _number(text: str, place: str, faults: list[FieldFault], required: bool) -> float | None:
    text = text.strip()
    if not text:
        if required:
            faults.append(FieldFault(place, "is empty; write the seconds since the run began"))
        return None
    try:
        value = float(text)
    except ValueError:
        faults.append(
            FieldFault(place, f"{text[:40]!r} is not a number; leave the field empty where nothing was measured")
        )
        return None
    if math.isnan(value) and not required:
        return None
    if not math.isfinite(value) or value < 0:
        faults.append(FieldFault(place, f"{text} cannot be; leave the field empty where nothing was measured"))
        return None
    return value


def _refusal(name: str, faults: list[FieldFault]) -> Problem:
    more = len(faults) - FAULTS_LIMIT
    listed = faults[:FAULTS_LIMIT]
    detail = f"{name} cannot be analysed" + (f"; {more} more faults are not listed" if more > 0 else "")
    return Problem(Code.BAD_REQUEST, detail, listed)
