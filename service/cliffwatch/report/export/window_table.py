"""A run's windows as rows: one for each window and operation, and one for each gap between them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.analysis.coverage import Gap, MeasuredInterval, measure_coverage
from cliffwatch.journal import JournalReader, JournalWindow
from cliffwatch.journal.windows import QUANTILE_NAMES
from cliffwatch.model.operation import primary_latency
from cliffwatch.report.collect import (
    WINDOW_SECONDS_ASSUMED,
    LoadSpan,
    events_until_finished,
    load_of,
    order_in,
    status_in,
    warm_up_end,
)
from cliffwatch.report.gaps import recorded_gaps

Value = str | int | float | None
Row = dict[str, Value]

WINDOW, GAP = "window", "gap"
TEXT_COLUMNS = ("row", "phase", "gap_reason", "operation")
WHOLE_COLUMNS = ("window", "count", "stalled")
#: Columns that every table begins with, in this order.
COLUMNS = (
    "row",
    "window",
    "start_timestamp_seconds",
    "end_timestamp_seconds",
    "start_elapsed_seconds",
    "end_elapsed_seconds",
    "measured_seconds",
    "phase",
    "gap_reason",
    "operation",
    "count",
    *(f"{name}_seconds" for name in QUANTILE_NAMES),
    "max_seconds",
    "stalled",
)


@dataclass(frozen=True, slots=True)
class WindowTable:
    """Table of a run's windows that are committed so far.

    `counters` and `gauges` are the names that any window has, each a column after `COLUMNS`. `primary` is the primary
    latency; None when no latency was measured. `load` is None when no load began; then there are no rows.
    """

    directory: Path
    run_id: str
    load: LoadSpan | None
    counters: tuple[str, ...]
    gauges: tuple[str, ...]
    primary: str | None
    gaps: tuple[Gap, ...]
    windows: int
    #: End of the warm-up, from which on the run is judged, in seconds since the epoch.
    judged_start: float

    @property
    def columns(self) -> tuple[str, ...]:
        return (*COLUMNS, *self.counters, *self.gauges)

    def pieces(self) -> Iterator[JournalWindow | Gap]:
        """Windows and gaps in order of time."""
        gaps = iter(self.gaps)
        gap = next(gaps, None)
        for number, window in enumerate(JournalReader(self.directory).windows()):
            if number == self.windows:
                # Windows that were committed after the gaps were computed.
                break
            while gap is not None and gap.start < window.start:
                yield gap
                gap = next(gaps, None)
            yield window
        while gap is not None:
            yield gap
            gap = next(gaps, None)

    def rows(self) -> Iterator[Row]:
        """Rows as values by column; values that were not measured are None or absent."""
        for piece in self.pieces():
            if isinstance(piece, Gap):
                reported: Row = {"row": GAP, "gap_reason": piece.reason}
                yield reported | self._bounds(piece.start, piece.end)
            else:
                yield from self._rows_of(piece)

    def _rows_of(self, window: JournalWindow) -> Iterator[Row]:
        common: Row = {"row": WINDOW, "window": window.seq, "phase": window.phase}
        common |= self._bounds(window.start, window.end) | {"measured_seconds": _rounded(window.seconds)}
        common["stalled"] = None if window.stalled is None else int(window.stalled)
        figures: Row = {name: window.counters.get(name) for name in self.counters}
        figures |= {name: window.gauges.get(name) for name in self.gauges}
        for operation, summary in window.latency.items() or [(None, {})]:
            latency: Row = {"operation": operation, "count": _whole(summary.get("count"))}
            latency |= {f"{name}_seconds": _rounded(summary.get(name)) for name in (*QUANTILE_NAMES, "max")}
            yield common | latency | figures

    def _bounds(self, start: float, end: float) -> Row:
        zero = self.load.start if self.load else start
        return {
            "start_timestamp_seconds": _rounded(start),
            "end_timestamp_seconds": _rounded(end),
            "start_elapsed_seconds": _rounded(start - zero),
            "end_elapsed_seconds": _rounded(end - zero),
        }


def table_of(directory: Path) -> WindowTable:
    """Read the columns and gaps of a journal, whole or damaged, finished or not."""
    reader = JournalReader(directory)
    order = order_in(reader)
    events = list(events_until_finished(reader))
    counters: dict[str, None] = {}
    gauges: dict[str, None] = {}
    operations: dict[str, None] = {}
    first: JournalWindow | None = None
    last: JournalWindow | None = None
    windows = 0
    for last in reader.windows():
        first = first or last
        windows += 1
        counters |= dict.fromkeys(last.counters)
        gauges |= dict.fromkeys(last.gauges)
        operations |= dict.fromkeys(last.latency)
    load = load_of(order, events, status_in(events, reader.faults), (first.start, last.end) if first and last else None)
    gaps: tuple[Gap, ...] = ()
    if load is not None:
        intervals = (MeasuredInterval(each.start, each.end, each.seconds) for each in _first(directory, windows))
        seconds = order.workload.window if order else WINDOW_SECONDS_ASSUMED
        gaps = measure_coverage(intervals, load.start, load.asked_end, seconds, recorded_gaps(events)).gaps
    taken = {*COLUMNS}
    return WindowTable(
        directory=directory,
        run_id=order.run_id if order else directory.name,
        load=load,
        counters=tuple(sorted(counters.keys() - taken)),
        # A gauge with the name of a counter would be a duplicate column.
        gauges=tuple(sorted(gauges.keys() - taken - counters.keys())),
        primary=primary_latency(sorted(operations)),
        gaps=gaps,
        windows=windows,
        judged_start=0.0 if load is None else warm_up_end(order, events, load),
    )


def _first(directory: Path, count: int) -> Iterator[JournalWindow]:
    for number, window in enumerate(JournalReader(directory).windows()):
        if number == count:
            return
        yield window


def _rounded(seconds: float | None) -> float | None:
    """Round to the nanosecond, or to the microsecond from a million seconds on, as for seconds since 1970."""
    return None if seconds is None else round(seconds, 6 if abs(seconds) >= 1e6 else 9)


def _whole(count: float | None) -> int | None:
    return None if count is None else int(count)
