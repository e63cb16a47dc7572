"""A run as the API shows it: in lists from its database row, shown alone with the journal's newest window too."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from cliffwatch.app.launcher import metrics_port_of
from cliffwatch.http.times import Time
from cliffwatch.journal import JournalReader, JournalWindow, files
from cliffwatch.model.run_state import RunState, VerdictName
from cliffwatch.model.target import Target, parse_targets
from cliffwatch.store.models import RunRow

#: States in which the load runs, as far as the service knows.
_UNDER_LOAD = frozenset({RunState.RUNNING, RunState.STOPPING, RunState.INTERRUPTED})


class WorkloadReference(BaseModel):
    """Which workload a run was made from; `version` is null where the document came with the request."""

    name: str
    version: int | None


class OnsetBody(BaseModel):
    """The first finding that degraded the run: its kind, its start in seconds of the load, and the slowdown ratio."""

    kind: str
    seconds: float
    ratio: float


class RunFiguresBody(BaseModel):
    """Figures of the whole load, null where it was not measured. `latency` names the latency of the percentiles."""

    latency: str | None
    p50_seconds: float | None
    p99_seconds: float | None
    max_seconds: float | None
    operations_per_second: float | None
    bytes_per_second: float | None
    device_write_seconds: float | None
    onset: OnsetBody | None


class RunSummary(BaseModel):
    """A run in a list.

    `planned_seconds` is the planned length of the load, `elapsed_seconds` how much of it has passed (null before it
    began), `progress_ratio` is elapsed / planned. `windows` counts committed windows. `figures` are those of the run's
    report, null until it is made. `imported_at` is null for a run of this service's own. A run that is `pinned` is not
    deleted.
    """

    id: str
    workload: WorkloadReference
    engine: str
    target: Target
    more_targets: tuple[Target, ...] = ()
    state: RunState
    since: Time
    phase: str | None
    verdict: VerdictName | None
    reasons: list[str]
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    elapsed_seconds: float | None
    planned_seconds: float
    progress_ratio: float
    windows: int
    figures: RunFiguresBody | None
    created_by: str
    schedule_id: str | None
    imported_at: Time | None
    labels: dict[str, str]
    note: str
    pinned: bool
    directory: str


class Window(BaseModel):
    """A window as stored in the journal: times in seconds since the epoch, latencies in seconds.

    `histograms` (if requested) are HdrHistogram V2 compressed, base64, in nanoseconds, by latency name.
    """

    seq: int
    start: float
    end: float
    phase: str
    counters: dict[str, int]
    gauges: dict[str, float]
    latency: dict[str, dict[str, float | None]]
    latency_range: tuple[int, int]
    histograms: dict[str, str] | None = None


class Run(RunSummary):
    """A run shown alone: `report` is the path of report.html once it is made, `metrics_port` its worker's port.
    `waits_for` are the runs that a queued run waits for, the oldest first. `standing` says what is decided of a run
    under load, what is open, and when the verdict is due; empty for other runs.
    """

    last_window: Window | None
    report: str | None
    metrics_port: int | None
    waits_for: list[str]
    standing: str


def run_summary(row: RunRow, now: float) -> RunSummary:
    return RunSummary.model_validate(_fields(row, now))


def run_resource(row: RunRow, now: float, waits_for: Sequence[str] = (), standing: str = "") -> Run:
    """A run as the API shows it alone: from its row and the end of its journal. `standing`: by `standing_of`."""
    directory = Path(row.directory)
    last = JournalReader(directory).last_window()
    fields = _fields(row, now, last.end if last is not None else row.last_window_end)
    report = directory / files.REPORT_HTML
    return Run(
        **fields,
        last_window=window_resource(last) if last is not None else None,
        report=str(report) if report.exists() else None,
        metrics_port=metrics_port_of(directory) if row.state != RunState.FINISHED.value else None,
        waits_for=list(waits_for),
        standing=standing,
    )


def window_resource(window: JournalWindow, histograms: dict[str, str] | None = None) -> Window:
    return Window(**asdict(window), histograms=histograms)


def _fields(row: RunRow, now: float, last_window_end: float | None = None) -> dict[str, Any]:
    planned = row.planned_seconds
    if row.load_start is not None and row.load_stop is not None:
        planned = row.load_stop - row.load_start
    targets = parse_targets(row.target)
    elapsed = _elapsed_seconds(row, now, last_window_end if last_window_end is not None else row.last_window_end)
    return {
        "id": row.id,
        "workload": WorkloadReference(name=row.workload_name, version=row.workload_version),
        "engine": row.engine,
        "target": targets[0],
        "more_targets": targets[1:],
        "state": RunState(row.state),
        "since": row.since,
        "phase": row.phase,
        "verdict": VerdictName(row.verdict) if row.verdict else None,
        "reasons": [str(reason) for reason in row.reasons],
        "created_at": row.created_at,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "elapsed_seconds": None if elapsed is None else round(elapsed, 3),
        "planned_seconds": planned,
        "progress_ratio": round(min(1.0, (elapsed or 0.0) / planned), 6) if planned > 0 else 0.0,
        "windows": row.windows,
        "figures": _figures(row),
        "created_by": row.created_by,
        "schedule_id": row.schedule_id,
        "imported_at": row.imported_at,
        "labels": {str(name): str(value) for name, value in row.labels.items()},
        "note": row.note or "",
        "pinned": row.pinned,
        "directory": row.directory,
    }


def _figures(row: RunRow) -> RunFiguresBody | None:
    """Figures of a run; None if there are none yet, or if the stored ones are damaged."""
    try:
        return None if row.figures is None else RunFiguresBody.model_validate(row.figures)
    except ValidationError:
        return None


def _elapsed_seconds(row: RunRow, now: float, last_window_end: float | None) -> float | None:
    """Elapsed time of the load: by the clock while the load runs, else to the last window; None until it is planned."""
    if row.load_start is None or row.load_stop is None:
        return None
    reached = last_window_end if last_window_end is not None else row.load_start
    if RunState(row.state) in _UNDER_LOAD:
        # Whichever is further: in virtual time the windows are ahead of the clock.
        reached = max(reached, min(now, row.load_stop))
    return max(0.0, reached - row.load_start)
