"""Read a run's collected telemetry, for the report and for later analysis.

A damaged part is reported and skipped; the interval that it held is a gap.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cliffwatch.telemetry.parts import (
    DIRECTORY,
    Hole,
    Index,
    Part,
    Points,
    SampleGrid,
    UnreadablePart,
    describe_part,
    missing,
    part_names,
    read_part,
)

Floats = NDArray[np.float64]
_NOT_WRITTEN = "nothing was collected"


@dataclass(frozen=True, slots=True)
class Samples:
    """One labelled series: `times` (seconds since the epoch, rising) and `values`, of the same length."""

    labels: dict[str, str]
    times: Floats
    values: Floats


@dataclass(frozen=True, slots=True)
class TelemetryGap:
    """Gap in the telemetry from `start` to `end` (seconds since the epoch, both included)."""

    start: float
    end: float
    reason: str


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Collected telemetry of a run. `series` is by names of `SERIES`, without those that Prometheus never had.

    `step_seconds` is the least time between two samples of one series; a missing sample is absent, not NaN.
    `faults` lists the files that could not be read, and why.
    """

    step_seconds: float
    start: float
    end: float
    series: dict[str, tuple[Samples, ...]]
    gaps: tuple[TelemetryGap, ...]
    faults: tuple[str, ...]

    def of(self, name: str) -> tuple[Samples, ...]:
        return self.series.get(name, ())


def read(directory: Path, names: Collection[str] | None = None) -> Telemetry | None:
    """Read the telemetry of the run whose journal is in `directory`, or just the series `names` of it.

    None when none was ever collected. Raises nothing because of damage.
    """
    parts_directory = directory / DIRECTORY
    if not parts_directory.is_dir():
        return None
    faults: list[str] = []
    try:
        index = Index.read(parts_directory)
    except UnreadablePart as error:
        faults.append(str(error))
        index = None
    pieces: dict[tuple[str, str], list[tuple[Floats, Floats]]] = {}
    parts: list[Part] = []
    grid = index.grid if index else None
    for name in part_names(parts_directory):
        try:
            of_part, part = describe_part(parts_directory / name)
            if grid is not None and of_part != grid:
                raise UnreadablePart(f"{name} is not of this run")
            for key, chunk in _collected(read_part(parts_directory / name), names):
                pieces.setdefault(key, []).append(chunk)
        except UnreadablePart as error:
            faults.append(str(error))
            continue
        grid = grid or of_part
        parts.append(part)
    if grid is None:
        return Telemetry(0.0, 0.0, 0.0, {}, (), tuple(faults)) if faults else None
    until = max([index.until if index else 0, *(part.points.last for part in parts)])
    series: dict[str, list[Samples]] = {}
    for (name, labels), chunks in sorted(pieces.items()):
        series.setdefault(name, []).append(_samples(labels, chunks))
    return Telemetry(
        step_seconds=grid.step_milliseconds / 1000,
        start=grid.seconds(0),
        end=grid.seconds(until),
        series={name: tuple(samples) for name, samples in series.items()},
        gaps=_gaps(grid, parts, until, index),
        faults=tuple(faults),
    )


def _collected(table: pa.Table, names: Collection[str] | None) -> list[tuple[tuple[str, str], tuple[Floats, Floats]]]:
    """Times and values of a part, by series and labels. The rows of one labelled series are adjacent."""
    if table.num_rows == 0:
        return []
    columns = {name: table.column(name).chunk(0) for name in table.column_names}
    times, values = (columns[name].to_numpy(zero_copy_only=False) for name in ("time", "value"))
    series, labels = columns["series"], columns["labels"]
    of_series, of_labels = series.indices.to_numpy(), labels.indices.to_numpy()
    begins = np.flatnonzero(np.diff(of_series, prepend=-1) | np.diff(of_labels, prepend=-1))
    found = []
    for begin, end in zip(begins, [*begins[1:], table.num_rows], strict=True):
        name = series.dictionary[of_series[begin]].as_py()
        if names is None or name in names:
            key = (name, labels.dictionary[of_labels[begin]].as_py())
            found.append((key, (times[begin:end], values[begin:end])))
    return found


def _samples(labels: str, chunks: list[tuple[Floats, Floats]]) -> Samples:
    """Samples in order of time, without duplicates: a gap may have been filled by a later part."""
    times = np.concatenate([chunk[0] for chunk in chunks])
    values = np.concatenate([chunk[1] for chunk in chunks])
    times, first = np.unique(times, return_index=True)
    return Samples({str(name): str(value) for name, value in json.loads(labels).items()}, times, values[first])


def _gaps(grid: SampleGrid, parts: list[Part], until: int, index: Index | None) -> tuple[TelemetryGap, ...]:
    """Intervals that no readable part holds, each with the reason that is known for it."""
    recorded: list[Hole] = []
    if index is not None:
        readable = {part.file for part in parts}
        lost = [part for part in index.parts if part.file not in readable]
        recorded = [*index.holes, *(Hole(part.points, f"{part.file} is missing or damaged") for part in lost)]
    return tuple(
        TelemetryGap(grid.seconds(piece.first), grid.seconds(piece.last), reason)
        for points in missing(parts, until)
        for piece, reason in _split(points, recorded)
    )


def _split(points: Points, holes: list[Hole]) -> list[tuple[Points, str]]:
    """Split an interval at the bounds of the holes in it, each piece with its reason."""
    found = []
    next_point = points.first
    for hole in sorted(holes, key=lambda hole: hole.points):
        first, last = max(next_point, hole.points.first), min(points.last, hole.points.last)
        if first > last:
            continue
        if first > next_point:
            found.append((Points(next_point, first - 1), _NOT_WRITTEN))
        found.append((Points(first, last), hole.reason))
        next_point = last + 1
    if next_point <= points.last:
        found.append((Points(next_point, points.last), _NOT_WRITTEN))
    return found
