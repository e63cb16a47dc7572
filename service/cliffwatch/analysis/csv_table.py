"""Read a CSV of windows as series and samples: one row per window, with `elapsed_seconds` and any of the other columns.

`elapsed_seconds` is the start of a row's window. Latencies are seconds; an empty field was not measured. A second
table, `elapsed_seconds,name`, lists restarts and similar events.
"""

import csv
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from cliffwatch.analysis.finding import Notice, Role
from cliffwatch.analysis.foreign_headings import Converted, said_of
from cliffwatch.analysis.table import (
    ABOUT_COLUMNS,
    COLUMNS,
    END_COLUMN,
    LARGEST,
    MEASURED_COLUMN,
    NAME_COLUMN,
    TEXT_COLUMNS,
    TIME_COLUMN,
    Row,
    Table,
    series_of_column,
    table_of,
)
from cliffwatch.base.clock import LAST_MOMENT
from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.printed_numbers import plain_number, with_decimal_point
from cliffwatch.base.suggestion import did_you_mean

#: The first column of `cliffwatch run export --format csv`, a format that is not read here.
EXPORT_COLUMN = "row"
#: Tolerance for times, which are written to the microsecond.
_ROUNDING_SECONDS = 1e-5
#: The most faults that one refusal lists.
FAULTS_LIMIT = 20
#: The most unknown columns that one refusal names.
_UNKNOWN_LIMIT = 10


def read_table(lines: Iterable[str], name: str = "table") -> Table:
    """Series and samples of a CSV. Raises Problem(bad_request) that names every field and line at fault.

    A negative value, as from a counter that was reset, counts as not measured; zero is a value; an infinite value is a
    fault. Rows have to be in order of time. A column `phase` may name the phase of each row.
    """
    faults: list[FieldFault] = []
    rows = _cells(lines)
    may_be = (TIME_COLUMN, *COLUMNS, *ABOUT_COLUMNS)
    converted = Converted(_headings(rows, name, may_be), may_be, lambda heading: series_of_column(heading) is not None)
    header = _header(converted.header, name, may_be)
    if converted.taken:
        rows = converted.rows(rows)
    found = {column: series for column in header if (series := series_of_column(column)) is not None}
    if not any(series.role in (Role.LATENCY, Role.DEVICE_LATENCY) for series in found.values()):
        raise _refusal(name, [FieldFault(f"{name} line 1", "no latency column; name one p50, p99, …")])
    read: list[Row] = []
    below_zero: Counter[str] = Counter()
    has_numbers_only = not {*TEXT_COLUMNS, END_COLUMN, MEASURED_COLUMN}.intersection(header)
    for number, row in _rows(rows, name):
        if has_numbers_only and (plain := _plain_numbers(header, row)) is not None:
            begin = plain.pop(TIME_COLUMN)
            if begin <= LAST_MOMENT and (not read or begin > read[-1].at):
                read.append(Row(begin, {}, plain))
                continue
        fields = _fields(header, row, f"{name} line {number}", faults)
        if fields is None:
            continue
        at = _time(fields.pop(TIME_COLUMN), f"{name} line {number}, {TIME_COLUMN}", faults)
        if at is None:
            continue
        if read and at <= read[-1].at:
            faults.append(
                FieldFault(
                    f"{name} line {number}, {TIME_COLUMN}",
                    f"{at:g} is not after {read[-1].at:g} of the row before; rows have to be in order of time",
                )
            )
            continue
        texts = {column: text for column in TEXT_COLUMNS if (text := fields.pop(column, "").strip())}
        numbers = {column: _value(text, f"{name} line {number}, {column}", faults) for column, text in fields.items()}
        known = {column: value for column, value in numbers.items() if value is not None}
        _check_bounds(at, known, f"{name} line {number}", faults)
        below_zero.update(column for column, value in known.items() if value < 0)
        read.append(Row(at, texts, {column: value for column, value in known.items() if value >= 0}))
    if faults:
        raise _refusal(name, faults)
    if len(read) < 2:
        raise _refusal(name, [FieldFault(name, "holds fewer than two rows; a series needs at least two windows")])
    remark = said_of(converted.taken) if converted.taken else ""
    return replace(table_of(found, read), below_zero=dict(below_zero), remark=remark)


def read_notices(lines: Iterable[str], name: str = "events") -> list[Notice]:
    """Known events of an `elapsed_seconds,name` CSV, in order of time. Raises Problem(bad_request)."""
    faults: list[FieldFault] = []
    rows = _cells(lines)
    known = (TIME_COLUMN, NAME_COLUMN)
    header = _header(_headings(rows, name, known), name, known)
    if NAME_COLUMN not in header:
        raise _refusal(name, [FieldFault(f"{name} line 1", f"has no column {NAME_COLUMN}; write {TIME_COLUMN},name")])
    notices = []
    for number, row in _rows(rows, name):
        fields = _fields(header, row, f"{name} line {number}", faults)
        if fields is None:
            continue
        at = _time(fields[TIME_COLUMN], f"{name} line {number}, {TIME_COLUMN}", faults)
        label = fields[NAME_COLUMN].strip()
        if not label:
            faults.append(FieldFault(f"{name} line {number}, {NAME_COLUMN}", "is empty; name the event"))
        elif at is not None:
            notices.append(Notice(at, label))
    if faults:
        raise _refusal(name, faults)
    return sorted(notices, key=lambda notice: notice.at)


def _cells(lines: Iterable[str]) -> Iterator[list[str]]:
    """Cells of each row. Where semicolons or tabs separate the columns, a comma within a number is decimal."""
    remaining = iter(lines)
    first = next(remaining, "")
    delimiter = next((each for each in (",", ";", "\t") if each in first), ",")
    rows = csv.reader(chain([first], remaining), delimiter=delimiter)
    return rows if delimiter == "," else ([with_decimal_point(cell) for cell in row] for row in rows)


def _headings(rows: Iterator[list[str]], name: str, known: Sequence[str]) -> list[str]:
    """Cells of the first line. Raises Problem where they are no names of columns."""
    try:
        first = next(rows, [])
    except csv.Error as error:
        raise _refusal(
            name, [FieldFault(f"{name} line 1", f"cannot be read ({error}); write names of columns")]
        ) from error
    header = [cell.strip().removeprefix("\ufeff") for cell in first]
    place, example = f"{name} line 1", f"write one first, such as {','.join(known[:2])}"
    if not header:
        raise _refusal(name, [FieldFault(place, f"is empty; {example}")])
    if all(_is_number(cell) for cell in header):
        raise _refusal(name, [FieldFault(place, f"holds numbers and no names of columns; {example}")])
    if header[0] == EXPORT_COLUMN:
        remedy = "export the run again with `--format analyze`, or name the run itself"
        raise _refusal(name, [FieldFault(place, f"is that of `cliffwatch run export --format csv`; {remedy}")])
    return header


def _header(header: list[str], name: str, known: Sequence[str]) -> list[str]:
    """The header, each column of which is known. Raises Problem that names those which are not."""
    place = f"{name} line 1"
    unknown = [cell for cell in header if cell not in known and series_of_column(cell) is None]
    faults = [
        FieldFault(place, f"{cell!r} is no column that is known; rename it or leave it out{did_you_mean(cell, known)}")
        # Further columns are only counted, without a suggestion for each.
        for cell in unknown[:_UNKNOWN_LIMIT]
    ]
    if unknown:
        more = len(unknown) - _UNKNOWN_LIMIT
        others = f"has {more} more columns that are not known; it " if more > 0 else ""
        faults.append(FieldFault(place, f"{others}may have these columns: {', '.join(known)}"))
    if TIME_COLUMN not in header:
        faults.append(FieldFault(place, f"has no column {TIME_COLUMN}; it says at which second each row begins"))
    faults += [
        FieldFault(place, f"{cell!r} appears twice; remove one") for cell, count in Counter(header).items() if count > 1
    ]
    if faults:
        raise _refusal(name, faults)
    return header


def _rows(rows: Iterable[list[str]], name: str) -> Iterable[tuple[int, list[str]]]:
    number = 1
    try:
        for number, row in enumerate(rows, start=2):
            if row and any(cell.strip() for cell in row):
                yield number, row
    except csv.Error as error:
        message = f"cannot be read ({error}); look for a quotation mark that is not closed"
        raise _refusal(name, [FieldFault(f"{name} line {number + 1}", message)]) from error


def _plain_numbers(header: Sequence[str], row: Sequence[str]) -> dict[str, float] | None:
    """Numbers of a row by column, of a row in which each cell is a number that counts as measured; None otherwise. It
    is what most rows are, and by far the quickest way to read them."""
    try:
        numbers = dict(zip(header, map(plain_number, row), strict=True))
    except ValueError:
        return None
    # The bounds are false for NaN.
    return numbers if all(0 <= value <= LARGEST for value in numbers.values()) else None


def _fields(header: Sequence[str], row: Sequence[str], place: str, faults: list[FieldFault]) -> dict[str, str] | None:
    if len(row) != len(header):
        faults.append(FieldFault(place, f"has {len(row)} fields where the first line names {len(header)}"))
        return None
    return dict(zip(header, row, strict=True))


def _time(text: str, place: str, faults: list[FieldFault]) -> float | None:
    """Parse seconds since the run began; None, with a fault added, where malformed or out of range."""
    right = "write the seconds since the run began"
    try:
        seconds = plain_number(text)
    except ValueError:
        wrong = f"{text.strip()[:40]!r} is not a number" if text.strip() else "is empty"
        faults.append(FieldFault(place, f"{wrong}; {right}"))
        return None
    if not 0 <= seconds <= LAST_MOMENT:
        faults.append(FieldFault(place, f"{text.strip()[:40]} cannot be; {right}"))
        return None
    return seconds


def _check_bounds(at: float, known: Mapping[str, float], place: str, faults: list[FieldFault]) -> None:
    """Add a fault where a row does not end after it begins, or was measured for longer than it lasts."""
    end = known.get(END_COLUMN, math.inf)
    if end <= at:
        faults.append(FieldFault(f"{place}, {END_COLUMN}", f"{end:g} is not after {at:g}, where the row begins"))
    elif known.get(MEASURED_COLUMN, 0.0) > end - at + _ROUNDING_SECONDS:
        words = f"{known[MEASURED_COLUMN]:g} is more than the {end - at:g} that the row lasts"
        faults.append(FieldFault(f"{place}, {MEASURED_COLUMN}", words))


def _value(text: str, place: str, faults: list[FieldFault]) -> float | None:
    """Value of a field; None where it is empty or NaN, and None with a fault where it is malformed or too large."""
    text = text.strip()
    if not text:
        return None
    try:
        value = plain_number(text)
    except ValueError:
        faults.append(
            FieldFault(place, f"{text[:40]!r} is not a number; leave the field empty where nothing was measured")
        )
        return None
    if abs(value) > LARGEST:
        faults.append(FieldFault(place, f"{text[:40]} cannot be; leave the field empty where nothing was measured"))
        return None
    return None if math.isnan(value) else value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return not text
    return True


def _refusal(name: str, faults: list[FieldFault]) -> Problem:
    more = len(faults) - FAULTS_LIMIT
    listed = faults[:FAULTS_LIMIT]
    detail = f"{name} cannot be analysed" + (f"; {more} more faults are not listed" if more > 0 else "")
    return Problem(Code.BAD_REQUEST, detail, listed)
