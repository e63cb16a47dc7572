"""Telemetry in a journal as it is collected, without a Prometheus that knew it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from cliffwatch.telemetry.parts import DIRECTORY, Part, Points, SampleGrid, next_name, write_part


def write_telemetry(
    directory: Path, load_start: float, window_seconds: float, series: Mapping[tuple[str, ...], Sequence[float]]
) -> Part:
    """By name of the series, kernel name of the drive, and its limit if it is of one: a value at the load's start and
    at each window's end."""
    home = directory / DIRECTORY
    home.mkdir()
    grid = SampleGrid.of(load_start, window_seconds)
    rows: dict[str, list[float | str]] = {"time": [], "series": [], "labels": [], "value": []}
    points = 0
    for (name, *of), values in sorted(series.items()):
        points = len(values)
        rows["time"] += [grid.seconds(point) for point in range(points)]
        rows["series"] += [name] * points
        rows["labels"] += [json.dumps(dict(zip(("device", "limit"), of, strict=False)))] * points
        rows["value"] += [float(value) for value in values]
    columns = {
        "time": pa.array(rows["time"], pa.float64()),
        "series": pa.array(rows["series"]).dictionary_encode(),
        "labels": pa.array(rows["labels"]).dictionary_encode(),
        "value": pa.array(rows["value"], pa.float64()),
    }
    return write_part(home, next_name([]), pa.table(columns), grid, Points(0, points - 1))
