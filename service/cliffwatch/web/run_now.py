"""Periodic update of a live run's page: time left, the run's drives, and its limits with their margins."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from cliffwatch.analysis.stalls import silence_words
from cliffwatch.app.orders import read_order
from cliffwatch.app.standing import standing_of
from cliffwatch.base.errors import Problem
from cliffwatch.http.context import Context, RunId, Services, find_run
from cliffwatch.http.run_resource import RunSummary, run_resource
from cliffwatch.journal import JournalReader, files
from cliffwatch.model.limits import LimitSubject
from cliffwatch.model.run_state import RunState, VerdictName
from cliffwatch.report.format import elapsed
from cliffwatch.report.limits.now import LimitWatch, Outside, WatchedLimits, judged_limit
from cliffwatch.report.remedies import remedy_of
from cliffwatch.store.models import RunRow
from cliffwatch.store.queries import findings_page
from cliffwatch.telemetry.drive_health import DriveSource, drive_health, write_amplification
from cliffwatch.telemetry.prometheus import QueryFailed
from cliffwatch.web.drive_figures import NO_HEALTH, health_figures
from cliffwatch.web.page import HEADERS, PageRoute
from cliffwatch.web.part_figures import parts_now, parts_reported
from cliffwatch.web.session import AnyVisitor

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_FINDINGS_READ = 500


@router.get("/runs/{run_id}/now")
def show_now(run_id: RunId, request: Request, services: Context, visitor: AnyVisitor) -> Response:
    """Current figures as formatted text, so that a page shows the same as the report and the command line."""
    row = find_run(services, run_id)
    reader = JournalReader(Path(row.directory))
    watched = request.app.state.watched_limits
    assert isinstance(watched, WatchedLimits), "the application makes one"
    body: dict[str, Any] = {"drives": [], "drives_missing": "", "limits": [], "reading": False, "parts": []}
    body["origin"] = row.load_start if row.load_start is not None else row.created_at
    run = run_resource(row, services.clock.wall())
    # Both of one moment, so that they add up to the planned length.
    body |= {"elapsed_seconds": run.elapsed_seconds, "left": time_left(run)}
    if row.state != RunState.FINISHED.value:
        names = _drive_names(reader)
        body |= _drives(services, reader, names)
        body |= _limits(services, row, reader, watched, names)
        body["silent"] = _silence(row, reader, services.clock.wall())
        body["standing"] = standing_of(services.database, row)
        body["parts"] = _parts(reader)
    else:
        verdict = VerdictName(row.verdict) if row.verdict else None
        body |= _reported(services, run_id)
        body["remedy"] = remedy_of(verdict, row.reasons or [], run_id)
    return JSONResponse(body, headers=HEADERS)


def _silence(row: RunRow, reader: JournalReader, now: float) -> str:
    """Message that no window has arrived for too long; empty where one has, or while the run is not running."""
    last = reader.last_window()
    begin = last.end if last is not None else row.load_start
    if row.state != RunState.RUNNING.value or begin is None:
        return ""
    try:
        return silence_words(now - begin, read_order(reader).workload.window)
    except Problem:
        return ""


def _parts(reader: JournalReader) -> list[dict[str, Any]]:
    try:
        return [asdict(part) for part in parts_now(read_order(reader), reader)]
    except Problem:
        return []


def _reported(services: Services, run_id: str) -> dict[str, Any]:
    """Limits and parts as the run's report has them; none while it has no report, or a damaged one."""
    try:
        report = json.loads(services.reports.read(run_id, files.REPORT_JSON))
        limits = [asdict(judged_limit(row)) for row in report["limits"]]
        return {"limits": limits, "parts": [asdict(part) for part in parts_reported(report)]}
    except (Problem, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return {}


def time_left(run: RunSummary) -> str | None:
    """Time left of the load; rounded, left and elapsed time add up to the planned time. None where no load runs."""
    if run.state in (RunState.REPORTING, RunState.FINISHED) or run.elapsed_seconds is None:
        return None
    return elapsed(max(0, round(run.planned_seconds) - round(run.elapsed_seconds)))


def _drive_names(reader: JournalReader) -> list[str] | None:
    """Names of the run's drives, from its facts; None while the worker has not recorded them."""
    try:
        found = reader.facts().get("drives")
    except Problem:
        return None
    if not isinstance(found, list):
        return None
    return [each["name"] for each in found if isinstance(each, dict) and isinstance(each.get("name"), str)]


def _source(services: Services, reader: JournalReader) -> DriveSource:
    """Prometheus that has the series of the run's drives. Raises Problem."""
    return DriveSource.of(services.settings, read_order(reader).drives)


def _drives(services: Services, reader: JournalReader, names: list[str] | None) -> dict[str, Any]:
    if names is None:
        return {"drives_missing": "The drives below the target are found when the run starts."}
    if not names:
        return {"drives_missing": "No drive of this machine is below the target, and --drives named no other."}
    try:
        known = drive_health(_source(services, reader), services.clock.wall())
    except (QueryFailed, Problem) as error:
        return {"drives_missing": f"Not measured: {error}. Start the watchers with cliffwatch up."}
    drives = []
    for name in names:
        health = known.get(name)
        figures = [] if health is None else [asdict(figure) for figure in health_figures(health)]
        drives.append({"name": name, "figures": figures, "missing": "" if figures else NO_HEALTH})
    return {"drives": drives}


def _limits(
    services: Services, row: RunRow, reader: JournalReader, watched: WatchedLimits, names: list[str] | None
) -> dict[str, Any]:
    try:
        order = read_order(reader)
    except Problem:
        return {}
    limits = order.workload.limits
    if not limits or row.load_start is None:
        return {}
    watch = watched.of(reader.directory, limits, row.load_start, list(order.parts))
    is_current = watch.read_on()
    outside = Outside(_amplification(services, row, reader, watch, names or []), _found_kinds(services, row))
    return {"limits": [asdict(each) for each in watch.now(outside)], "reading": not is_current}


def _amplification(
    services: Services, row: RunRow, reader: JournalReader, watch: LimitWatch, names: list[str]
) -> dict[float | None, float]:
    """Highest write amplification of the run's drives, by the span of each limit on it; absent where not known."""
    now, found = services.clock.wall(), {}
    for span in {limit.over_seconds for limit in watch.limits if limit.subject is LimitSubject.AMPLIFICATION}:
        try:
            seconds = span or now - (row.load_start or now)
            known = write_amplification(_source(services, reader), now, seconds)
        except (QueryFailed, Problem):
            break
        if values := [known[name] for name in names if name in known]:
            found[span] = max(values)
    return found


def _found_kinds(services: Services, row: RunRow) -> list[str]:
    with services.database.snapshot() as session:
        return [finding.name for finding in findings_page(session, _FINDINGS_READ, run_id=row.id)]
