"""The CSV that `cliffwatch analyze` reads: all input of a run's own analysis, so that it leads to the same findings.

A row is a window or a gap. Latency columns without a name are those of the primary operation, which the column
`operation` names; columns of other operations and of single drives include their names.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from cliffwatch.analysis.coverage import Gap
from cliffwatch.analysis.finding import Notice, Role, Series
from cliffwatch.analysis.journal_series import notices_from_events, sample_of, series_of
from cliffwatch.analysis.table import (
    DEVICE_COLUMNS,
    DUE_COLUMN,
    END_COLUMN,
    ERRORS_COLUMN,
    GAP_COLUMN,
    LIMIT_COLUMN,
    MEASURED_COLUMN,
    NOTICE_COLUMN,
    NOTICE_TIME_COLUMN,
    OLDEST_COLUMN,
    OPERATION_COLUMN,
    PHASE_COLUMN,
    SKIPPED_COLUMN,
    TIME_COLUMN,
)
from cliffwatch.base.errors import Code, Problem
from cliffwatch.journal import JournalReader, JournalWindow
from cliffwatch.model.phase import Phase
from cliffwatch.model.window import requested_rate
from cliffwatch.report.collect import collect, events_until_finished
from cliffwatch.report.export.window_table import WindowTable
from cliffwatch.report.limits.results import judge_limits, outcomes

Row = dict[str, Any]
#: Gap reason of a row that was not measured at all, and for which no event records a reason.
_NOT_MEASURED = "not_measured"


@dataclass(frozen=True, slots=True)
class AnalyzableTable:
    """`header` names the columns; `rows` are their values in the order of time."""

    header: tuple[str, ...]
    rows: Iterator[list[Any]]


def analyzable(table: WindowTable) -> AnalyzableTable:
    """Table for `cliffwatch analyze`. Raises Problem(bad_request) for a run without any latency."""
    if table.primary is None or table.load is None:
        raise Problem(Code.BAD_REQUEST, f"run {table.run_id} has no window with a latency, so nothing can be analysed")
    known = _series(table)
    columns = {name: _column(series, table.primary) for name, series in known.items()}
    about = (TIME_COLUMN, END_COLUMN, MEASURED_COLUMN, PHASE_COLUMN, OPERATION_COLUMN)
    counts = (DUE_COLUMN, OLDEST_COLUMN, ERRORS_COLUMN, SKIPPED_COLUMN)
    header = (*about, *columns.values(), *counts, GAP_COLUMN, NOTICE_COLUMN, NOTICE_TIME_COLUMN, LIMIT_COLUMN)
    return AnalyzableTable(header, ([row.get(name) for name in header] for row in _rows(table, columns, known)))


def _series(table: WindowTable) -> dict[str, Series]:
    """Series for detection that any window of the run has, by name."""
    known: dict[str, Series] = {}
    for piece in table.pieces():
        for series in series_of(piece) if isinstance(piece, JournalWindow) else ():
            known.setdefault(series.name, series)
    return known


def _column(series: Series, primary: str) -> str:
    if series.role is Role.LATENCY:
        return series.name.removeprefix(f"{primary}.") if series.operation == primary else series.name
    if series.role in DEVICE_COLUMNS:
        return DEVICE_COLUMNS[series.role] + (f".{series.device}" if series.device is not None else "")
    return series.name


def _rows(table: WindowTable, columns: dict[str, str], known: dict[str, Series]) -> Iterator[Row]:
    assert table.load is not None, "looked at before"
    zero = table.load.start
    notices = notices_from_events(events_until_finished(JournalReader(table.directory)))
    notices.sort(key=lambda notice: notice.at)
    limits = _broken_limits(table)
    for piece in _parted(table.pieces(), table.judged_start):
        if piece.start < zero:
            continue
        row = _row(piece, zero, columns, known) | {OPERATION_COLUMN: table.primary}
        if isinstance(piece, Gap) and piece.end <= table.judged_start:
            row[PHASE_COLUMN] = Phase.WARM_UP.value
        reported: list[Notice] = []
        while notices and notices[0].at < piece.end:
            reported.append(notices.pop(0))
        if reported:
            row |= {NOTICE_COLUMN: reported[0].name, NOTICE_TIME_COLUMN: round(max(0.0, reported[0].at - zero), 6)}
        broken = [limits.pop(at) for at in sorted(limits) if at < piece.end - 1e-6]
        yield row | ({LIMIT_COLUMN: " ".join(broken)} if broken else {})


def _parted(pieces: Iterable[JournalWindow | Gap], moment: float) -> Iterator[JournalWindow | Gap]:
    """Pieces, with a gap across `moment` (end of the warm-up) split in two there: only the second part is judged."""
    for piece in pieces:
        if isinstance(piece, Gap) and piece.start < moment < piece.end:
            yield replace(piece, end=moment)
            yield replace(piece, start=moment)
        else:
            yield piece


def _row(piece: JournalWindow | Gap, zero: float, columns: dict[str, str], known: dict[str, Series]) -> Row:
    row: Row = {TIME_COLUMN: round(piece.start - zero, 6), END_COLUMN: round(piece.end - zero, 6)}
    if isinstance(piece, Gap):
        return row | {GAP_COLUMN: piece.reason or _NOT_MEASURED}
    if piece.seconds <= 0:
        return row | {GAP_COLUMN: _NOT_MEASURED}
    row |= {MEASURED_COLUMN: round(piece.seconds, 6), PHASE_COLUMN: piece.phase}
    sample = sample_of(piece, known.values())
    row[DUE_COLUMN] = requested_rate(piece.gauges)
    row |= {OLDEST_COLUMN: sample.oldest_seconds, ERRORS_COLUMN: piece.counters.get("errors")}
    row[SKIPPED_COLUMN] = piece.counters.get("skipped")
    return row | {columns[name]: value for name, value in sample.values.items()}


def _broken_limits(table: WindowTable) -> dict[float, str]:
    """Sentence for each broken limit, by time of its first breach; without limits on findings, such as `no cliff`."""
    run = collect(table.directory)
    judged = [each for each in judge_limits(run, ()) if each.broken]
    return {
        each.broken[0].start + 1e-3 * place: outcome.sentence
        for place, (each, outcome) in enumerate(zip(judged, outcomes(run, judged), strict=True))
    }
