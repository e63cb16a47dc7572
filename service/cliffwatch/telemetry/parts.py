"""Files of `telemetry/`: Parquet parts, each written completely or not at all, and the index of intervals.

A part has the columns time (float64, seconds since the epoch), series (a name in `SERIES`), labels (a JSON object) and
value (float64). Its times lie on the run's grid: a sample has the time at the end of the step in which it was scraped,
and a step without a sample has no row. The part's own metadata has its interval, so index.json can be lost, and a
checksum of the rows, so that a digit that changed on the disk is detected as damage. Parts that were written before the
checksum was introduced have none.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cliffwatch.base import durable
from cliffwatch.base.finite_json import lenient_json
from cliffwatch.journal.checksum import checksum, opened, sealed

DIRECTORY = "telemetry"
INDEX = "index.json"
_NAME = re.compile(r"part-(\d{6,})\.parquet")
_METADATA = b"cliffwatch.telemetry"

SCHEMA = pa.schema(
    [
        ("time", pa.float64()),
        ("series", pa.dictionary(pa.int32(), pa.string())),
        ("labels", pa.dictionary(pa.int32(), pa.string())),
        ("value", pa.float64()),
    ]
)


class UnreadablePart(Exception):
    """A file of `telemetry/` that cannot be understood; the message says which and why."""


@dataclass(frozen=True, slots=True)
class SampleGrid:
    """Grid of the times that are queried: point k is k steps after the load's start, in whole milliseconds."""

    start_milliseconds: int
    step_milliseconds: int

    @classmethod
    def of(cls, load_start: float, window_seconds: float) -> "SampleGrid":
        """Grid of a run: a step is its window, but between 1 s and 10 s."""
        return cls(round(load_start * 1000), round(min(10.0, max(1.0, window_seconds)) * 1000))

    def milliseconds(self, point: int) -> int:
        return self.start_milliseconds + point * self.step_milliseconds

    def seconds(self, point: int) -> float:
        return self.milliseconds(point) / 1000

    def last_point_until(self, moment: float) -> int:
        """The last point that is not after `moment` (seconds since the epoch); negative before the first."""
        return (round(moment * 1000) - self.start_milliseconds) // self.step_milliseconds

    def point_at(self, moment: float) -> int:
        return round((moment * 1000 - self.start_milliseconds) / self.step_milliseconds)


@dataclass(frozen=True, slots=True, order=True)
class Points:
    """Points `first` to `last` of the grid, both included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Part:
    """Parquet file of `telemetry/` with `rows` samples of one interval."""

    file: str
    points: Points
    rows: int


@dataclass(frozen=True, slots=True)
class Hole:
    """Interval of the grid that could not be collected, and why."""

    points: Points
    reason: str


@dataclass(frozen=True, slots=True)
class Index:
    """Index of `telemetry/` up to point `until` of the grid: the parts, and the holes between them."""

    grid: SampleGrid
    until: int
    parts: tuple[Part, ...]
    holes: tuple[Hole, ...]

    def write(self, directory: Path) -> None:
        """Write the index durably."""
        grid = self.grid
        body = {
            "version": 1,
            "start": grid.seconds(0),
            "step_seconds": grid.step_milliseconds / 1000,
            "end": grid.seconds(self.until),
            "parts": [{"file": part.file, "rows": part.rows} | _bounds(grid, part.points) for part in self.parts],
            "gaps": [{"reason": hole.reason} | _bounds(grid, hole.points) for hole in self.holes],
        }
        durable.write_json_durably(directory / INDEX, body)

    @classmethod
    def read(cls, directory: Path) -> "Index | None":
        """Read the index; None when there is none. Raises UnreadablePart."""
        try:
            body, _ = lenient_json((directory / INDEX).read_bytes())
            grid = SampleGrid(round(body["start"] * 1000), round(body["step_seconds"] * 1000))
            if grid.step_milliseconds <= 0:
                raise ValueError("the step is not positive")
            parts = tuple(Part(str(row["file"]), _points(grid, row), int(row["rows"])) for row in body["parts"])
            holes = tuple(Hole(_points(grid, row), str(row["reason"])) for row in body["gaps"])
            return cls(grid, grid.point_at(body["end"]), parts, holes)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, OverflowError, AttributeError) as error:
            raise UnreadablePart(f"{INDEX} cannot be read: {error!r}") from error


def _bounds(grid: SampleGrid, points: Points) -> dict[str, float]:
    return {"start": grid.seconds(points.first), "end": grid.seconds(points.last)}


def _points(grid: SampleGrid, row: dict[str, Any]) -> Points:
    return Points(grid.point_at(row["start"]), grid.point_at(row["end"]))


def part_names(directory: Path) -> list[str]:
    """File names of the parts in a directory, in the order they were written."""
    names = [path.name for path in directory.iterdir() if _NAME.fullmatch(path.name)]
    return sorted(names, key=_number)


def _number(name: str) -> int:
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else 0


def next_name(names: Iterable[str]) -> str:
    return f"part-{max((_number(name) for name in names), default=0) + 1:06d}.parquet"


def write_part(directory: Path, name: str, table: pa.Table, grid: SampleGrid, points: Points) -> Part:
    """Write a part durably; a crash meanwhile leaves at most a file whose name begins with a dot."""
    body = {
        "start": grid.seconds(0),
        "step_seconds": grid.step_milliseconds / 1000,
        "first": points.first,
        "last": points.last,
        "content_crc32": _checksum(table),
    }
    with durable.replacement(directory / name) as file:
        described = table.replace_schema_metadata({_METADATA: sealed(json.dumps(body)).encode()})
        pq.write_table(described, file, compression="zstd")
    return Part(name, points, table.num_rows)


def describe_part(path: Path) -> tuple[SampleGrid, Part]:
    """Metadata of a part. Raises UnreadablePart."""
    try:
        metadata = pq.read_metadata(path)
        body, _ = lenient_json(opened((metadata.metadata or {})[_METADATA]))
        grid = SampleGrid(round(body["start"] * 1000), round(body["step_seconds"] * 1000))
        return grid, Part(path.name, Points(int(body["first"]), int(body["last"])), metadata.num_rows)
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, OverflowError) as error:
        raise UnreadablePart(f"{path.name} cannot be read: {error}"[:300]) from error


def read_part(path: Path) -> pa.Table:
    """Rows of a part. Raises UnreadablePart."""
    try:
        with pq.ParquetFile(path) as file:
            body, _ = lenient_json(opened((file.metadata.metadata or {})[_METADATA]))
            table = file.read(columns=SCHEMA.names).cast(SCHEMA).combine_chunks()
        _check(table)
        if body.get("content_crc32") not in (None, _checksum(table)):
            raise ValueError("its checksum is another one: it was changed after it was written")
        return table
    except (OSError, pa.ArrowException, ValueError, KeyError, AttributeError, IndexError) as error:
        raise UnreadablePart(f"{path.name} cannot be read: {error}"[:300]) from error


def _checksum(table: pa.Table) -> str:
    """Checksum of the rows, independent of their encoding: Parquet's own checksums do not cover its page headers."""
    rows = table.cast(SCHEMA).combine_chunks()
    content = [rows.column(name).to_numpy().tobytes() for name in ("time", "value")]
    for name in ("series", "labels"):
        for chunk in rows.column(name).cast(pa.string()).chunks:
            content += [buffer.to_pybytes() for buffer in chunk.buffers() if buffer is not None]
    return checksum(b"".join(content))


def _check(table: pa.Table) -> None:
    """Check that rows are whole and labels are JSON objects. Raises ValueError."""
    table.validate(full=True)
    if any(table.column(name).null_count for name in SCHEMA.names):
        raise ValueError("a row of it has no time, series, labels or value")
    if not np.isfinite(table.column("time").to_numpy()).all():
        raise ValueError("a time of it is not finite")
    for chunk in table.column("labels").chunks:
        for text in chunk.dictionary.to_pylist():
            if text is None or not isinstance(lenient_json(text)[0], dict):
                raise ValueError("labels of it are no JSON object")


def remove_unfinished(directory: Path) -> None:
    """Remove unfinished files of a process that died. The caller is the only writer."""
    for path in directory.glob(".part-*"):
        path.unlink(missing_ok=True)


def covered(parts: Iterable[Part]) -> list[Points]:
    """Points that the parts hold, as sorted intervals, merged where they overlap or touch."""
    merged: list[Points] = []
    for points in sorted(part.points for part in parts):
        if merged and points.first <= merged[-1].last + 1:
            merged[-1] = Points(merged[-1].first, max(merged[-1].last, points.last))
        else:
            merged.append(points)
    return merged


def missing(parts: Iterable[Part], until: int) -> list[Points]:
    """The points from 0 to `until` that no part holds."""
    gaps, next_point = [], 0
    for points in covered(parts):
        if points.first > next_point:
            gaps.append(Points(next_point, min(points.first - 1, until)))
        next_point = max(next_point, points.last + 1)
    if next_point <= until:
        gaps.append(Points(next_point, until))
    return [gap for gap in gaps if gap.first <= gap.last]
