"""A run's windows as columns for charts, and as a small curve for lists.

`latency` of the columns is in seconds, rates per second; null where a window did not measure it, and a null row where
windows are missing, so that a gap is drawn as a gap.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cliffwatch.journal import JournalReader, JournalWindow, files
from cliffwatch.report.format import latency
from cliffwatch.report.headline import primary_latency

QUANTILES = ("p50", "p99", "p999", "max")
#: Windows that a small curve looks at, wherever it stands in a run and however long that is.
CURVE_POINTS = 60
CURVE_WIDTH, CURVE_HEIGHT = 120, 24
#: Part of a window that may be missing between two windows before it is a gap.
_GAP_TOLERANCE = 0.01


def row_of(window: JournalWindow, name: str | None, origin: float) -> list[float | None]:
    """Elapsed seconds at the window's end, then the columns of `COLUMNS`."""
    measured = window.latency.get(name or "", {})
    seconds = window.seconds
    return [
        round(window.end - origin, 3),
        *(measured.get(quantile) for quantile in QUANTILES),
        window.counters.get("operations", 0) / seconds,
        window.counters.get("bytes", 0) / seconds,
        device_write_latency(window.counters),
    ]


COLUMNS = ("elapsed", *QUANTILES, "operations_per_second", "bytes_per_second", "device_write_latency")


def device_write_latency(counters: dict[str, int]) -> float | None:
    """Mean seconds that a write took below the block layer; None where none was counted."""
    writes = counters.get("device_write_operations", 0)
    milliseconds = counters.get("device_write_milliseconds")
    return milliseconds / writes / 1000 if writes and milliseconds is not None else None


def columns_of(directory: Path, origin: float) -> dict[str, Any]:
    """Every window of a run, column by column, and the number of the last one (-1 while there is none)."""
    columns: list[list[float | None]] = [[] for _ in COLUMNS]
    previous: JournalWindow | None = None
    name: str | None = None
    for window in JournalReader(directory).windows():
        name = name or primary_latency(list(window.latency))
        if previous is not None and window.start - previous.end > (previous.end - previous.start) * _GAP_TOLERANCE:
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


@dataclass(frozen=True, slots=True)
class Curve:
    """A small curve: `points` for an SVG polyline in a box of CURVE_WIDTH × CURVE_HEIGHT, and what it says in words."""

    points: str
    words: str


def small_curve(directory: Path) -> Curve | None:
    """p99 of some windows spread over the run, logarithmic; None where there are too few to draw.

    Reads no more than CURVE_POINTS lines, found by their place in the file.
    """
    values = [value for value in (_p99_of(line) for line in _spread_lines(directory / files.WINDOWS)) if value]
    if len(values) < 2:
        return None
    low, high = math.log(min(values)), math.log(max(values))
    # A run that is the same within a factor of two is drawn as flat as it is.
    span = max(high - low, math.log(2))
    middle = (low + high) / 2
    places = []
    for index, value in enumerate(values):
        x = index * (CURVE_WIDTH - 2) / (len(values) - 1) + 1
        y = CURVE_HEIGHT / 2 - (math.log(value) - middle) / span * (CURVE_HEIGHT - 4)
        places.append(f"{x:.1f},{y:.1f}")
    words = f"p99 from {latency(values[0])} to {latency(values[-1])}, at most {latency(max(values))}"
    return Curve(" ".join(places), words)


def _spread_lines(path: Path) -> list[bytes]:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            lines: list[bytes] = []
            for index in range(CURVE_POINTS):
                place = size * index // CURVE_POINTS
                file.seek(max(0, place - 1))
                if place > 0:
                    file.readline()
                line = file.readline()
                if line.endswith(b"\n") and (not lines or line != lines[-1]):
                    lines.append(line)
            return lines
    except FileNotFoundError:
        return []


def _p99_of(line: bytes) -> float | None:
    try:
        measured: dict[str, dict[str, float | None]] = json.loads(line)["latency"]
    except (ValueError, KeyError, TypeError):
        return None
    name = primary_latency(list(measured))
    return measured[name].get("p99") if name is not None else None
