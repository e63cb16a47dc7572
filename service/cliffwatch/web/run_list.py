"""The list of runs: each with its verdict, its figures and the curve of its p99, drawn on one scale for all of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from cliffwatch.analysis.stalls import stall_of, stall_words
from cliffwatch.analysis.verdict import DEGRADING_KINDS
from cliffwatch.base.units import format_ratio
from cliffwatch.http.context import Services
from cliffwatch.http.run_resource import RunSummary, run_summary
from cliffwatch.journal import JournalReader, moment_in, number_in
from cliffwatch.model.latency_scale import at_least
from cliffwatch.model.operation import primary_latency
from cliffwatch.model.run_state import RunState, VerdictName
from cliffwatch.report.charts.curve import Curve, curve_of
from cliffwatch.report.charts.small_curve import Scale, SmallCurve, scale_of, small_curve
from cliffwatch.report.format import byte_rate, elapsed, latency, rate
from cliffwatch.store.models import FindingRow, RunRow
from cliffwatch.store.queries import first_findings, has_known_words, unfinished_runs
from cliffwatch.web.firing import FiringAlert, FollowedAlerts, of_no_run

#: A stored curve. Points that were stored before stalls were added to them have two figures.
_KEPT: TypeAdapter[Curve] = TypeAdapter(Curve)


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A row of the list. `span` is the part of the run that the figures are about, as text."""

    run: RunSummary
    p99: str
    throughput: str
    operations: str
    span: str
    onset: str
    onset_note: str
    curve: SmallCurve | None
    alerts: tuple[FiringAlert, ...] = ()


@dataclass(frozen=True, slots=True)
class RunList:
    """Rows, the common scale of their curves (None without any value), and the firing `alerts` that name no run."""

    runs: tuple[ListedRun, ...]
    scale: Scale | None
    alerts: tuple[FiringAlert, ...]


def run_list(services: Services, rows: Sequence[RunRow], followed: FollowedAlerts) -> RunList:
    """Rows of the list: from the index for finished runs, from the ends of the journals for live ones."""
    now = services.clock.wall()
    rows = [row for row in rows if has_known_words(row)]
    with services.database.snapshot() as session:
        findings = first_findings(session, [row.id for row in rows], DEGRADING_KINDS)
        firing = {row.id: followed.of(Path(row.directory)) for row in unfinished_runs(session)}
    curves = [points_of(row) for row in rows]
    scale = scale_of(point.p99 for curve in curves for point in curve)
    return RunList(
        tuple(
            replace(
                _listed(
                    row,
                    run_summary(row, now),
                    findings.get(row.id),
                    small_curve(curve, scale, row.load_start, row.load_stop),
                ),
                alerts=tuple(alert for alert in firing.get(row.id, ()) if alert.names_a_run),
            )
            for row, curve in zip(rows, curves, strict=True)
        ),
        scale,
        tuple(of_no_run(services.alerts.standing(), list(firing.values()))),
    )


def points_of(row: RunRow) -> Curve:
    """Points of a run's curve: as stored in the index when it ended, or before that from its journal."""
    if row.curve is None:
        return curve_of(Path(row.directory))
    # A stored value that is no curve is damage.
    try:
        points = _KEPT.validate_python(row.curve)
    except ValidationError:
        return []
    numbers = [(point.at, point.p99 or 0.0, point.stall or 0.0) for point in points]
    return points if all(math.isfinite(sum(each)) and min(each) >= 0 for each in numbers) else []


def _onset_note(kind: str, ratio: float | None) -> str:
    # For work that was not done, the ratio is of rates, and below 1.
    return kind if ratio is None or ratio < 1 else f"{kind} {format_ratio(ratio)}"


def _listed(row: RunRow, run: RunSummary, finding: FindingRow | None, curve: SmallCurve | None) -> ListedRun:
    figures = run.figures
    if figures is not None:
        onset = figures.onset
        none = "–" if run.verdict == VerdictName.FAILED or not row.windows else "none"
        return ListedRun(
            run,
            f"{at_least(run.engine, figures.p99_seconds)}{latency(figures.p99_seconds)}",
            byte_rate(figures.bytes_per_second),
            rate(figures.operations_per_second),
            "whole load",
            elapsed(onset.seconds) if onset else none,
            _onset_note(onset.kind, onset.ratio) if onset else "",
            curve,
        )
    onset_time, note = _onset_of(row, finding)
    p99, throughput, operations, span = _newest(row)
    return ListedRun(run, p99, throughput, operations, span, onset_time, note, curve)


def _newest(row: RunRow) -> tuple[str, str, str, str]:
    """p99, throughput, operations of the newest window, and text for their span; dashes where there is no window."""
    window = JournalReader(Path(row.directory)).last_window()
    if window is None:
        return latency(None), byte_rate(None), "", ""
    name = primary_latency(list(window.latency))
    seconds = window.seconds
    operations = rate(window.counters.get("operations", 0) / seconds)
    moved = byte_rate(window.counters["bytes"] / seconds if "bytes" in window.counters else None)
    stall = stall_of(window)
    span = "last window" if stall is None else stall_words(stall).partition(",")[0]
    return latency(window.latency[name].get("p99") if name and stall is None else None), moved, operations, span


def _onset_of(row: RunRow, finding: FindingRow | None) -> tuple[str, str]:
    """Elapsed time at which a run without final figures began to degrade, and by how much, as text."""
    if finding is None:
        return ("–" if row.state == RunState.FINISHED.value or row.windows == 0 else "none so far"), ""
    onset, ratio = moment_in(finding.detail, "onset"), number_in(finding.detail, "ratio")
    after = (finding.at if onset is None else onset) - (row.load_start or row.created_at)
    return elapsed(after), _onset_note(finding.name, ratio)
