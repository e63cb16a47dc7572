"""Convert a table of windows, from a CSV or another program's output, into series and samples.

`elapsed_seconds` is the start of a row's window. Latencies are seconds; an absent value was not measured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median

from cliffwatch.analysis.asked_rate import AskedRate
from cliffwatch.analysis.finding import Notice, Role, Sample, Series
from cliffwatch.analysis.stalls import Slowest
from cliffwatch.model.phase import UNJUDGED_PHASES

TIME_COLUMN = "elapsed_seconds"
NAME_COLUMN = "name"
PHASE_COLUMN = "phase"
#: Columns that the export of a run adds: a row's end, its measured seconds, failed operations; the operation of the
#: latency columns that name none; why the row is a gap; the sentence on a broken limit; an event, and its time.
END_COLUMN, MEASURED_COLUMN, ERRORS_COLUMN = "end_elapsed_seconds", "measured_seconds", "errors"
OPERATION_COLUMN, GAP_COLUMN, LIMIT_COLUMN = "operation", "gap", "limit_broken"
NOTICE_COLUMN, NOTICE_TIME_COLUMN = "notice", "notice_elapsed_seconds"
#: Operations that were due and that the load maker did not execute.
SKIPPED_COLUMN = "skipped"
#: Age, at a row's end, of the oldest operation that was due and not completed.
OLDEST_COLUMN = "oldest_outstanding_seconds"
#: Operations per second that were due in a row.
DUE_COLUMN = "due_per_second"
#: Largest value that counts as measured; sums of larger ones may not be finite.
LARGEST = 1e18
TEXT_COLUMNS = (PHASE_COLUMN, OPERATION_COLUMN, GAP_COLUMN, NOTICE_COLUMN, LIMIT_COLUMN)
ABOUT_COLUMNS = (
    END_COLUMN,
    MEASURED_COLUMN,
    ERRORS_COLUMN,
    SKIPPED_COLUMN,
    NOTICE_TIME_COLUMN,
    OLDEST_COLUMN,
    DUE_COLUMN,
    *TEXT_COLUMNS,
)
#: Columns of devices, which may carry a device's number: `device_write_latency.8:0`.
DEVICE_COLUMNS = {
    Role.DEVICE_LATENCY: "device_write_latency",
    Role.QUEUE_DEPTH: "queue_depth",
    Role.WRITE_AMPLIFICATION: "write_amplification",
}
_DEVICE_SERIES = {
    "device_write_latency": "device.write_latency",
    "queue_depth": "device.queue_depth",
    "write_amplification": "device.write_amplification",
}
#: Columns that hold a series, in the order in which messages list them.
COLUMNS: dict[str, Series] = {
    "p50": Series("p50", Role.LATENCY, quantile=0.5),
    "p90": Series("p90", Role.LATENCY, quantile=0.9),
    "p95": Series("p95", Role.LATENCY, quantile=0.95),
    "p99": Series("p99", Role.LATENCY, quantile=0.99),
    "p999": Series("p999", Role.LATENCY, quantile=0.999),
    "p9999": Series("p9999", Role.LATENCY, quantile=0.9999),
    "mean": Series("mean", Role.LATENCY),
    "max": Series("max", Role.LATENCY, quantile=1.0),
    "device_write_latency": Series("device_write_latency", Role.DEVICE_LATENCY),
    "queue_depth": Series("queue_depth", Role.QUEUE_DEPTH),
    "write_amplification": Series("write_amplification", Role.WRITE_AMPLIFICATION),
    "operations_per_second": Series("operations_per_second", Role.RATE),
}
#: A row lasts until the next one. Where the next one is further away than this many median distances, the row lasts one
#: median distance, and a gap follows.
GAP_DISTANCES = 2.5


@dataclass(frozen=True, slots=True)
class Table:
    """Series and samples of a table, in order of time; `window_seconds` is the median distance between rows.

    `below_zero` is the number of negative values of each column, which are left out. `measured` is the measured
    seconds of each sample. `gaps` are the rows that mark a gap, as (start, end); `notices`, `limits`, `errors` and
    `skipped` come from the other columns of rows. `completed` is the sum of all rates times their rows' measured
    seconds, None without a rate. `warm_up_end` is the end of the leading rows of phases that are not judged, None
    without such rows. `slowest` is the slowest operation if it is known from outside the rows; `rate` is the target
    and the achieved rate, over the judged rows that have both, None without such rows. `remark` is a sentence on how
    the table was read.
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
    skipped: int = 0
    completed: int | None = None
    warm_up_end: float | None = None
    slowest: Slowest | None = None
    rate: AskedRate | None = None
    remark: str = ""


@dataclass(slots=True)
class Row:
    """One row as read: its start, its texts by column, its numbers by column."""

    at: float
    texts: dict[str, str]
    numbers: dict[str, float]


def series_of_column(column: str) -> Series | None:
    """Series of a column; None for a column that holds no series."""
    if column in COLUMNS:
        return COLUMNS[column]
    plain, _, quantile = column.rpartition(".")
    if plain and quantile in COLUMNS and COLUMNS[quantile].role is Role.LATENCY:
        return replace(COLUMNS[quantile], name=column, operation=plain)
    plain, _, device = column.partition(".")
    if plain in _DEVICE_SERIES and device:
        return replace(COLUMNS[plain], name=f"{_DEVICE_SERIES[plain]}.{device}", device=device)
    return None


def table_of(found: Mapping[str, Series], read: Sequence[Row]) -> Table:
    """Convert rows, two or more and in order of time, to a table. `found`: series by column."""
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
    return Table(
        tuple(sorted(series.values(), key=_order) if operation is not None else series.values()),
        tuple(samples),
        usual,
        measured=tuple(measured),
        gaps=tuple(gaps),
        notices=tuple(notices),
        limits=tuple(row.texts[LIMIT_COLUMN] for row in read if LIMIT_COLUMN in row.texts),
        errors=_sum(read, ERRORS_COLUMN),
        skipped=_sum(read, SKIPPED_COLUMN),
        completed=_completed(samples, measured, series),
        warm_up_end=warm_up_end,
        rate=_asked_rate(read, samples, measured, series),
    )


def _sum(read: Sequence[Row], column: str) -> int:
    return round(sum(row.numbers.get(column, 0.0) for row in read))


def _completed(samples: Sequence[Sample], measured: Sequence[float], series: Mapping[str, Series]) -> int | None:
    rate = next((one.name for one in series.values() if one.role is Role.RATE), None)
    if rate is None:
        return None
    return round(sum(seconds * sample.values.get(rate, 0.0) for sample, seconds in zip(samples, measured, strict=True)))


def _asked_rate(
    read: Sequence[Row], samples: Sequence[Sample], measured: Sequence[float], series: Mapping[str, Series]
) -> AskedRate | None:
    rate = next((one.name for one in series.values() if one.role is Role.RATE), "")
    due = {row.at: row.numbers[DUE_COLUMN] for row in read if DUE_COLUMN in row.numbers}
    both = [
        (seconds, due[sample.start], sample.values[rate])
        for sample, seconds in zip(samples, measured, strict=True)
        if sample.start in due and rate in sample.values and sample.phase not in UNJUDGED_PHASES
    ]
    length = sum(seconds for seconds, _, _ in both)
    asked, reached = (sum(each[0] * each[place] for each in both) for place in (1, 2))
    return AskedRate(asked / length, reached / length) if asked > 0 else None


def _values(series: Mapping[str, Series], numbers: Mapping[str, float]) -> dict[str, float]:
    """A row's values by series name. A latency of 0 beside a rate of 0 is left out: some tables write it where no
    operation completed."""
    nothing = 0 in numbers.values() and any(
        one.role is Role.RATE and numbers.get(column) == 0 for column, one in series.items()
    )
    return {
        one.name: numbers[column]
        for column, one in series.items()
        if column in numbers and not (nothing and one.role is Role.LATENCY and numbers[column] == 0)
    }


def _named(series: Series, operation: str | None) -> Series:
    """Series, renamed as in a run if the table was exported from one (`operation` is not None)."""
    if operation is None:
        return series
    if series.role is Role.LATENCY and series.operation is None:
        return replace(series, name=f"{operation}.{series.name}", operation=operation)
    return replace(series, name=_DEVICE_SERIES.get(series.name, series.name))


def _order(series: Series) -> tuple[int, str, int]:
    """Sort key for the order of series in a journal: operations, the rate, all devices together, each device."""
    if series.role is Role.LATENCY:
        return (0, series.operation or "", round(1e6 * (series.quantile or 0.0)))
    if series.role is Role.RATE:
        return (1, "", 0)
    return (2, series.device or "", list(DEVICE_COLUMNS).index(series.role))
