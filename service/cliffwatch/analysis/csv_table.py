"""A CSV of windows as series and samples: one row a window, `elapsed_seconds` and any subset of the columns.

`elapsed_seconds` is the start of a row's window. Latencies are seconds; an empty field was not measured. A second
table, `elapsed_seconds,name`, lists restarts and similar events.
"""

import csv
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median

from cliffwatch.analysis.finding import Notice, Role, Sample, Series
from cliffwatch.base.clock import LAST_MOMENT
from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.suggestion import did_you_mean
from cliffwatch.model.phase import UNJUDGED_PHASES

TIME_COLUMN = "elapsed_seconds"
NAME_COLUMN = "name"
PHASE_COLUMN = "phase"
#: What the export of a run adds: a row's end, how much of it was measured, operations that failed, the operation of the
#: latencies without a name; why it was a gap; what happened in it, and when; what was said of a limit that it broke.
END_COLUMN, MEASURED_COLUMN, ERRORS_COLUMN = "end_elapsed_seconds", "measured_seconds", "errors"
OPERATION_COLUMN, GAP_COLUMN, LIMIT_COLUMN = "operation", "gap", "limit_broken"
NOTICE_COLUMN, NOTICE_TIME_COLUMN = "notice", "notice_elapsed_seconds"
#: How old the oldest operation was at a row's end that was due and not completed.
OLDEST_COLUMN = "oldest_outstanding_seconds"
_TEXT = (PHASE_COLUMN, OPERATION_COLUMN, GAP_COLUMN, NOTICE_COLUMN, LIMIT_COLUMN)
_ABOUT = (END_COLUMN, MEASURED_COLUMN, ERRORS_COLUMN, NOTICE_TIME_COLUMN, OLDEST_COLUMN, *_TEXT)
#: Columns of devices, which may carry a device's number: `device_write_latency.8:0`.
DEVICE_COLUMNS = {Role.DEVICE_LATENCY: "device_write_latency", Role.QUEUE_DEPTH: "queue_depth"}
_DEVICE_SERIES = {"device_write_latency": "device.write_latency", "queue_depth": "device.queue_depth"}
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
#: The first column of `cliffwatch run export --format csv`, a format that is not read here.
EXPORT_COLUMN = "row"
#: Of a value that was measured; sums of larger ones are no numbers any more.
_LARGEST = 1e18
#: Times are written to the microsecond.
_ROUNDING_SECONDS = 1e-5
#: The most faults that one refusal lists.
FAULTS_LIMIT = 20
#: And the most columns of one that it names.
_UNKNOWN_LIMIT = 10
#: A row stands for as long as the next one is away, but for no more than so many usual distances: beyond that is a gap.
GAP_DISTANCES = 2.5


@dataclass(frozen=True, slots=True)
class CsvTable:
    """`samples` in order of time; `window_seconds` is the usual distance between rows.

    `below_zero` is how many values of each column were left out because they are negative. `measured` is how many
    seconds of each sample were. `gaps` are rows that say that nothing was measured; `notices`, `limits` and `errors`
    are what rows say besides. `warm_up_end` is the end of the first rows of phases that are not judged, None without.
    """

    series: tuple[Series, ...]
    samples: tuple[Sample, ...]
    window_seconds: float
    below_zero: Mapping[str, int] = field(default_factory=dict)
    measured: tuple[float, ...] = ()
    gaps: tuple[tuple[float, float], ...] = ()
    notices: tuple[Notice, ...] = ()
    limits: tuple[str, ...] = ()
    errors: int = 0
    warm_up_end: float | None = None


@dataclass(slots=True)
class _Row:
    """One row as it was read: text by column, numbers by column, its start."""

    at: float
    texts: dict[str, str]
    numbers: dict[str, float]


def read_table(lines: Iterable[str], name: str = "table") -> CsvTable:
    """Series and samples of a CSV. Raises Problem(bad_request) that names every field and line at fault.

    A negative value is what a counter gives that was reset, and was not measured; zero is a value; an infinite one is a
    fault. Rows have to be in order of time. A column `phase` may name the phase of each row.
    """
    faults: list[FieldFault] = []
    rows = csv.reader(lines)
    header = _header(rows, name, (TIME_COLUMN, *COLUMNS, *_ABOUT))
    found = {column: series for column in header if (series := series_of_column(column)) is not None}
    if not any(series.role in (Role.LATENCY, Role.DEVICE_LATENCY) for series in found.values()):
        raise _refusal(name, [FieldFault(f"{name} line 1", "no latency column; name one p50, p99, …")])
    read: list[_Row] = []
    below_zero: Counter[str] = Counter()
    for number, row in _rows(rows, name):
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
        texts = {column: text for column in _TEXT if (text := fields.pop(column, "").strip())}
        numbers = {column: _value(text, f"{name} line {number}, {column}", faults) for column, text in fields.items()}
        known = {column: value for column, value in numbers.items() if value is not None}
        _check_bounds(at, known, f"{name} line {number}", faults)
        below_zero.update(column for column, value in known.items() if value < 0)
        read.append(_Row(at, texts, {column: value for column, value in known.items() if value >= 0}))
    if faults:
        raise _refusal(name, faults)
    if len(read) < 2:
        raise _refusal(name, [FieldFault(name, "holds fewer than two rows; a series needs at least two windows")])
    return replace(_table(found, read), below_zero=dict(below_zero))


def series_of_column(column: str) -> Series | None:
    """What a column holds; None where it is none of a series."""
    if column in COLUMNS:
        return COLUMNS[column]
    plain, _, quantile = column.rpartition(".")
    if plain and quantile in COLUMNS and COLUMNS[quantile].role is Role.LATENCY:
        return replace(COLUMNS[quantile], name=column, operation=plain)
    plain, _, device = column.partition(".")
    if plain in _DEVICE_SERIES and device:
        return replace(COLUMNS[plain], name=f"{_DEVICE_SERIES[plain]}.{device}", device=device)
    return None


def read_notices(lines: Iterable[str], name: str = "events") -> list[Notice]:
    """Known events of an `elapsed_seconds,name` CSV, in order of time. Raises Problem(bad_request)."""
    faults: list[FieldFault] = []
    rows = csv.reader(lines)
    header = _header(rows, name, (TIME_COLUMN, NAME_COLUMN))
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


def _table(found: Mapping[str, Series], read: Sequence[_Row]) -> CsvTable:
    times = [row.at for row in read]
    distances = [later - earlier for earlier, later in pairwise(times)]
    usual = median(distances)
    lengths = [distance if distance <= GAP_DISTANCES * usual else usual for distance in [*distances, usual]]
    operation = next((row.texts[OPERATION_COLUMN] for row in read if OPERATION_COLUMN in row.texts), None)
    series = {column: _named(one, operation) for column, one in found.items()}
    samples, measured, gaps, notices = [], [], [], []
    warm_up_end, is_warming_up = None, True
    for row, length in zip(read, lengths, strict=True):
        end = row.numbers.get(END_COLUMN, row.at + length)
        is_warming_up = is_warming_up and row.texts.get(PHASE_COLUMN) in UNJUDGED_PHASES
        warm_up_end = end if is_warming_up else warm_up_end
        if NOTICE_COLUMN in row.texts:
            notices.append(Notice(row.numbers.get(NOTICE_TIME_COLUMN, row.at), row.texts[NOTICE_COLUMN]))
        if GAP_COLUMN in row.texts:
            gaps.append((row.at, end))
            continue
        values = _values(series, row.numbers)
        oldest = row.numbers.get(OLDEST_COLUMN)
        samples.append(Sample(row.at, end, values, row.texts.get(PHASE_COLUMN), oldest))
        measured.append(min(row.numbers.get(MEASURED_COLUMN, end - row.at), end - row.at))
    return CsvTable(
        tuple(sorted(series.values(), key=_order) if operation is not None else series.values()),
        tuple(samples),
        usual,
        measured=tuple(measured),
        gaps=tuple(gaps),
        notices=tuple(notices),
        limits=tuple(row.texts[LIMIT_COLUMN] for row in read if LIMIT_COLUMN in row.texts),
        errors=round(sum(row.numbers.get(ERRORS_COLUMN, 0.0) for row in read)),
        warm_up_end=warm_up_end,
    )


def _values(series: Mapping[str, Series], numbers: Mapping[str, float]) -> dict[str, float]:
    """A row's values by series. A latency of 0 beside a rate of 0 is how some write that nothing was completed."""
    nothing = any(one.role is Role.RATE and numbers.get(column) == 0 for column, one in series.items())
    return {
        one.name: numbers[column]
        for column, one in series.items()
        if column in numbers and not (nothing and one.role is Role.LATENCY and numbers[column] == 0)
    }


def _named(series: Series, operation: str | None) -> Series:
    """In the export of a run, series have the names that the run's own have."""
    if operation is None:
        return series
    if series.role is Role.LATENCY and series.operation is None:
        return replace(series, name=f"{operation}.{series.name}", operation=operation)
    return replace(series, name=_DEVICE_SERIES.get(series.name, series.name))


def _order(series: Series) -> tuple[int, str, int]:
    """The order in which a journal has its series: operations, the rate, all devices together, each of them."""
    if series.role is Role.LATENCY:
        return (0, series.operation or "", round(1e6 * (series.quantile or 0.0)))
    if series.role is Role.RATE:
        return (1, "", 0)
    return (2, series.device or "", int(series.role is Role.QUEUE_DEPTH))


def _header(rows: Iterable[list[str]], name: str, known: Sequence[str]) -> list[str]:
    try:
        first = next(iter(rows), [])
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
    if len(header) == 1 and ";" in header[0]:
        raise _refusal(name, [FieldFault(place, "separates fields by semicolons; separate them by commas")])
    if header[0] == EXPORT_COLUMN:
        remedy = "export the run again with `--format analyze`, or name the run itself"
        raise _refusal(name, [FieldFault(place, f"is that of `cliffwatch run export --format csv`; {remedy}")])
    unknown = [cell for cell in header if cell not in known and series_of_column(cell) is None]
    faults = [
        FieldFault(place, f"{cell!r} is no column that is known; rename it or leave it out{did_you_mean(cell, known)}")
        # More are counted, and what each of them may have meant is not searched for.
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


def _fields(header: Sequence[str], row: Sequence[str], place: str, faults: list[FieldFault]) -> dict[str, str] | None:
    if len(row) != len(header):
        faults.append(FieldFault(place, f"has {len(row)} fields where the first line names {len(header)}"))
        return None
    return dict(zip(header, row, strict=True))


def _time(text: str, place: str, faults: list[FieldFault]) -> float | None:
    """Seconds since the run began, or None and a fault."""
    right = "write the seconds since the run began"
    try:
        seconds = _number(text)
    except ValueError:
        wrong = f"{text.strip()[:40]!r} is not a number" if text.strip() else "is empty"
        faults.append(FieldFault(place, f"{wrong}; {right}"))
        return None
    if not 0 <= seconds <= LAST_MOMENT:
        faults.append(FieldFault(place, f"{text.strip()[:40]} cannot be; {right}"))
        return None
    return seconds


def _check_bounds(at: float, known: Mapping[str, float], place: str, faults: list[FieldFault]) -> None:
    """A row ends after it begins, and no more of it was measured than there is."""
    end = known.get(END_COLUMN, math.inf)
    if end <= at:
        faults.append(FieldFault(f"{place}, {END_COLUMN}", f"{end:g} is not after {at:g}, where the row begins"))
    elif known.get(MEASURED_COLUMN, 0.0) > end - at + _ROUNDING_SECONDS:
        words = f"{known[MEASURED_COLUMN]:g} is more than the {end - at:g} that the row lasts"
        faults.append(FieldFault(f"{place}, {MEASURED_COLUMN}", words))


def _value(text: str, place: str, faults: list[FieldFault]) -> float | None:
    """What a field measured; None where nothing was, with a fault where that is not what the field says."""
    text = text.strip()
    if not text:
        return None
    try:
        value = _number(text)
    except ValueError:
        faults.append(
            FieldFault(place, f"{text[:40]!r} is not a number; leave the field empty where nothing was measured")
        )
        return None
    if abs(value) > _LARGEST:
        faults.append(FieldFault(place, f"{text[:40]} cannot be; leave the field empty where nothing was measured"))
        return None
    return None if math.isnan(value) else value


def _number(text: str) -> float:
    """Raises ValueError, also for what only Python takes for a number: 1_000, and digits of other scripts."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return float(text)


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
