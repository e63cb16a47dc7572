"""A run's windows as columns for charts.

Latencies are in seconds, rates per second. A value that a window did not measure is null; missing windows are a row of
nulls, so that a gap is drawn as a gap.
"""

from pathlib import Path
from typing import Any

from cliffwatch.analysis.coverage import GAP_TOLERANCE
from cliffwatch.analysis.stalls import stall_of
from cliffwatch.journal import JournalReader, JournalWindow
from cliffwatch.model.drive_id import mean_request_seconds
from cliffwatch.model.operation import primary_latency

QUANTILES = ("p50", "p99", "p999", "max")


def row_of(window: JournalWindow, name: str | None, origin: float) -> list[float | None]:
    """Row of a window: the values of `COLUMNS`; the first is elapsed seconds at the window's end."""
    measured = window.latency.get(name or "", {})
    seconds = window.seconds
    return [
        round(window.end - origin, 3),
        *(measured.get(quantile) for quantile in QUANTILES),
        window.counters.get("operations", 0) / seconds,
        window.counters.get("bytes", 0) / seconds,
        mean_request_seconds(window.counters),
        stall_of(window),
    ]


COLUMNS = ("elapsed", *QUANTILES, "operations_per_second", "bytes_per_second", "device_write_latency", "stall")


def columns_of(directory: Path, origin: float) -> dict[str, Any]:
    """Every window of a run, column by column, and the number of the last one (-1 while there is none)."""
    columns: list[list[float | None]] = [[] for _ in COLUMNS]
    previous: JournalWindow | None = None
    name: str | None = None
    for window in JournalReader(directory).windows():
        name = name or primary_latency(list(window.latency))
        if previous is not None and window.start - previous.end > (previous.end - previous.start) * GAP_TOLERANCE:
            _add(columns, [round(previous.end - origin + 0.001, 3), *[None] * (len(COLUMNS) - 1)])
        _add(columns, row_of(window, name, origin))
        previous = window
    return {
        "names": list(COLUMNS),
        "columns": columns,
        "latency": name,
        "last_window": -1 if previous is None else previous.seq,
    }


def _add(columns: list[list[float | None]], row: list[float | None]) -> None:
    for column, value in zip(columns, row, strict=True):
        column.append(value)
