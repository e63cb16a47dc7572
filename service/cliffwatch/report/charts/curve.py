"""Small curve of a run's p99 over time: a few windows, spread over the whole run."""

import json
from pathlib import Path
from typing import NamedTuple

from cliffwatch.analysis.stalls import stall_seconds
from cliffwatch.base.regular_files import reading
from cliffwatch.journal import files
from cliffwatch.journal.checksum import opened
from cliffwatch.model.operation import primary_latency

#: Number of windows that are read, at evenly spaced byte offsets of the file.
CURVE_POINTS = 60


class CurvePoint(NamedTuple):
    """A window that ended at `at`, in seconds since the epoch: its p99 in seconds, None where nothing was completed.

    `stall`: for a stalled window, age of its oldest operation in seconds, 0 where not known; None for other windows.
    """

    at: float
    p99: float | None
    stall: float | None = None


Curve = list[CurvePoint]


def curve_of(directory: Path) -> Curve:
    """Points of a run's curve in order of time; empty without windows. Reads no more than CURVE_POINTS lines."""
    points = (_point(line) for line in _spread_lines(directory / files.WINDOWS))
    return [point for point in points if point is not None]


def _spread_lines(path: Path) -> list[bytes]:
    try:
        size = path.stat().st_size
        with reading(path) as file:
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
    except OSError:
        return []  # the report lists what cannot be read


def _point(line: bytes) -> CurvePoint | None:
    """Curve point from a line of windows.jsonl; None where the line holds no window."""
    try:
        body = json.loads(opened(line))
        measured: dict[str, dict[str, float | None]] = body["latency"]
        name, end = primary_latency(list(measured)), float(body["end"])
        seconds = body["gauges"].get("measured_seconds", end - float(body["start"]))
        stall = stall_seconds(body["counters"], body["gauges"], seconds)
        # A stalled window may have latencies of requests whose operations were not completed.
        return CurvePoint(end, measured[name].get("p99") if name is not None and stall is None else None, stall)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
