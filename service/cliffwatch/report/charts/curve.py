"""Small curve of a run's p99 over time: the worst windows of a run that is over, a few windows of one that goes on."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from cliffwatch.analysis.stalls import stall_of, stall_seconds
from cliffwatch.journal import JournalWindow, files
from cliffwatch.journal.checksum import opened
from cliffwatch.journal.spread import spread_lines
from cliffwatch.model.operation import primary_latency
from cliffwatch.model.part_names import of_part
from cliffwatch.report.part_view import as_part

#: Number of windows that are read of a run that goes on, at evenly spaced byte offsets of the file; and number of spans
#: whose worst windows are taken of a run that is over.
CURVE_POINTS = 60


class CurvePoint(NamedTuple):
    """A window that ended at `at`, in seconds since the epoch: its p99 in seconds, None where nothing was completed.

    `stall`: for a stalled window, age of its oldest operation in seconds, 0 where not known; None for other windows.
    """

    at: float
    p99: float | None
    stall: float | None = None


Curve = list[CurvePoint]


def worst_curve(windows: Sequence[JournalWindow]) -> Curve:
    """Points of a run's curve in order of time, so that no spike and no stall is left out: of each of CURVE_POINTS
    spans, the window with the highest p99 and the stalled window with the oldest operation; the first and last window.
    """
    return _worst([_point_of(window) for window in windows])


def worst_curve_of_part(windows: Sequence[JournalWindow], part: str, name: str) -> Curve:
    """Points of the curve of one part's latency, chosen as those of `worst_curve`."""
    own = of_part(part, name)
    points = []
    for window in windows:
        # The part's own view is made only where it may have stalled.
        completed = window.counters.get(of_part(part, "operations"), 0)
        stall = stall_of(as_part(window, part)) if not completed else None
        points.append(CurvePoint(window.end, window.latency.get(own, {}).get("p99") if stall is None else None, stall))
    return _worst(points)


def _worst(points: Sequence[CurvePoint]) -> Curve:
    count = len(points)
    bounds = [count * index // CURVE_POINTS for index in range(CURVE_POINTS + 1)]
    spans = [points[first:behind] for first, behind in pairwise(bounds)]
    slowest = [max(span, key=lambda point: point.p99 or 0.0) for span in spans if span]
    stalled = [max(span, key=lambda point: -1.0 if point.stall is None else point.stall) for span in spans if span]
    kept = {*points[:1], *points[-1:], *slowest, *(point for point in stalled if point.stall is not None)}
    return sorted(kept, key=lambda point: point.at)


def curve_in(report: Mapping[str, Any]) -> Curve:
    """Curve of a report.json; empty for one of an earlier version, which has none. Raises KeyError or TypeError for
    another document."""
    return [
        CurvePoint(each["at"], each.get("p99_seconds"), each.get("stall_seconds")) for each in report.get("curve", [])
    ]


def curve_of(directory: Path) -> Curve:
    """Points of a run's curve in order of time; empty without windows. Reads no more than CURVE_POINTS lines."""
    points = (_point(line) for line in spread_lines(directory / files.WINDOWS, CURVE_POINTS))
    return [point for point in points if point is not None]


def _point_of(window: JournalWindow) -> CurvePoint:
    name, stall = primary_latency(list(window.latency)), stall_of(window)
    return CurvePoint(
        window.end, window.latency[name].get("p99") if name is not None and stall is None else None, stall
    )


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
