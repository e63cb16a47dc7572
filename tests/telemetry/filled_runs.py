"""Runs of the past, and what a Prometheus that scraped them would have."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from testkit.recorded_runs import LOAD_START, JournalPlan, make_journal

from cliffwatch.telemetry.reader import Floats, Samples, Telemetry

DRIVE_FACTS = {
    "target": {"kind": "directory"},
    "drives": [{"name": "nvme0n1"}],
    "file_system": {"mount_point": "/data"},
}
OPERATIONS = 'cliffwatch_operations_total{job="cliffwatch-worker",run_id="run-1"}'
WRITES = 'node_disk_writes_completed_total{job="node",instance="local",device="nvme0n1"}'


def make_run(directory: Path, windows: int, window_seconds: float = 10.0) -> Path:
    """The journal of a run that lasted so many windows; they themselves are of no interest here and not in it."""
    plan = JournalPlan(
        windows=windows,
        window_seconds=window_seconds,
        missing=range(windows),
        target="directory:/data",
        facts=DRIVE_FACTS,
    )
    return make_journal(directory, plan)


def times(steps: int, step_seconds: float = 10.0) -> Floats:
    """The moments of the grid, from the load's start to its end."""
    return LOAD_START + np.arange(steps + 1, dtype=np.float64) * step_seconds


def counter(labelled: str, moments: Iterable[float], values: Iterable[float]) -> Iterator[str]:
    """One series in OpenMetrics, with its type."""
    yield f"# TYPE {labelled.partition('{')[0].removesuffix('_total')} counter"
    for moment, value in zip(moments, values, strict=True):
        yield f"{labelled} {value!r} {moment:.3f}"


def the_one(telemetry: Telemetry | None, name: str) -> Samples:
    """The only labelled series of that name."""
    assert telemetry is not None
    (samples,) = telemetry.of(name)
    return samples
