"""Runs: the list, one run live, its series, and its report."""

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BeforeValidator
from sse_starlette import EventSourceResponse

from cliffwatch.http.context import Context, RunId, find_run
from cliffwatch.http.journal_resource import report_page, report_picture
from cliffwatch.http.live_stream import live_stream
from cliffwatch.http.paging import PageToken
from cliffwatch.http.run_resource import Run, RunSummary, run_resource
from cliffwatch.http.run_rows import listed_rows
from cliffwatch.journal import EventType, JournalReader
from cliffwatch.model.document import Name
from cliffwatch.model.run_state import MEANINGS, RunState, VerdictName
from cliffwatch.web.curves import columns_of
from cliffwatch.web.firing import FollowedAlerts
from cliffwatch.web.page import HEADERS, PageRoute, go_to, show
from cliffwatch.web.run_list import CURVE_HEIGHT, CURVE_WIDTH, run_list
from cliffwatch.web.session import AnyVisitor, Form, Operating

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_PAGE_SIZE = 25
#: Events that a live page lists; the report and the API have all of them.
_EVENTS_SHOWN = 200
#: What a live page lists of a run's events: the rest is for events.jsonl.
_SHOWN_TYPES = frozenset(
    {EventType.STATE, EventType.PHASE, EventType.GAP, EventType.FINDING, EventType.ALERT, EventType.NOTE}
)
#: A form sends an empty text for `any`.
_CHOICE = BeforeValidator(lambda text: text or None)
_STOPPABLE = frozenset({RunState.QUEUED, RunState.STARTING, RunState.RUNNING, RunState.INTERRUPTED})


@router.get("/")
def show_start(visitor: AnyVisitor) -> Response:
    return go_to("/runs")


@router.get("/runs")
def show_runs(
    request: Request,
    services: Context,
    visitor: AnyVisitor,
    state: Annotated[RunState | None, _CHOICE] = None,
    workload: Annotated[Name | None, _CHOICE] = None,
    verdict: Annotated[VerdictName | None, _CHOICE] = None,
    page: PageToken = None,
) -> Response:
    """Runs, newest first, each with its verdict, its figures and the curve of its p99."""
    followed = request.app.state.followed_alerts
    assert isinstance(followed, FollowedAlerts), "the application makes one"
    rows = listed_rows(services, state, workload, verdict, _PAGE_SIZE, page)
    chosen: dict[str, Any] = {"verdict": verdict, "state": state, "workload": workload}
    filters = {name: str(value) for name, value in chosen.items() if value is not None}
    return show(
        request,
        "runs.html",
        visitor,
        list=run_list(services, rows.items, followed),
        older=urlencode(filters | {"page": rows.next_page}) if rows.next_page else "",
        filtered=bool(filters),
        states=list(RunState),
        verdicts=list(VerdictName),
        meanings=MEANINGS,
        curve_width=CURVE_WIDTH,
        curve_height=CURVE_HEIGHT,
        **chosen,
    )


@router.get("/runs/{run_id}")
def show_run(request: Request, run_id: RunId, services: Context, visitor: AnyVisitor) -> Response:
    """One run, followed while it goes on."""
    row = find_run(services, run_id)
    run = run_resource(row, services.clock.wall(), services.runs.waits_for(row))
    window_seconds = JournalReader(Path(row.directory)).document("order.json")["workload"]["window"]
    return show(
        request,
        "run.html",
        visitor,
        run=run,
        meaning=MEANINGS[run.state] + (f", after {', '.join(run.waits_for)}" if run.waits_for else ""),
        stoppable=run.state in _STOPPABLE and visitor.may_operate,
        window=window_seconds,
    )


@router.get("/runs/{run_id}/series")
def show_series(run_id: RunId, services: Context, visitor: AnyVisitor) -> Response:
    """What a live page draws of the past, and where its stream goes on."""
    row = find_run(services, run_id)
    origin = row.load_start if row.load_start is not None else row.created_at
    directory = Path(row.directory)
    events, last_event = _events(directory, origin)
    series = columns_of(directory, origin)
    body = series | {
        "origin": origin,
        "has_begun": row.load_start is not None,
        "planned_seconds": row.planned_seconds,
        "events": events,
        "position": f"{last_event}.{series['last_window']}",
        "run": _facts_of(run_resource(row, services.clock.wall())),
    }
    return JSONResponse(body, headers=HEADERS)


@router.get("/runs/{run_id}/live")
async def follow(
    run_id: RunId,
    services: Context,
    visitor: AnyVisitor,
    request: Request,
    after: Annotated[str, Query(pattern=r"^\d{1,12}\.-?\d{1,12}$")] = "0.-1",
) -> EventSourceResponse:
    """The API's own stream, from `after` on; a browser that comes again names the place itself."""
    return await live_stream(services, run_id, request.headers.get("last-event-id") or after)


@router.get("/runs/{run_id}/report")
def show_report(run_id: RunId, services: Context, visitor: AnyVisitor) -> Response:
    return report_page(services, run_id)


@router.get("/runs/{run_id}/report.png")
def show_picture(run_id: RunId, services: Context, visitor: AnyVisitor) -> Response:
    return report_picture(services, run_id)


@router.post("/runs/{run_id}/stop")
def stop(run_id: RunId, services: Context, visitor: Operating, form: Form) -> Response:
    """Stop a run; `force` kills it."""
    services.runs.stop(run_id, force=form.get("force") == "yes")
    return go_to(f"/runs/{run_id}")


_FACTS = {"state", "phase", "verdict", "reasons", "progress_ratio", "elapsed_seconds", "windows", "figures"}


def _facts_of(run: Run | RunSummary) -> dict[str, Any]:
    return run.model_dump(mode="json", include=_FACTS)


def _events(directory: Path, origin: float) -> tuple[list[dict[str, Any]], int]:
    """The newest events worth showing, and the number of the last of all."""
    shown: list[dict[str, Any]] = []
    last = 0
    for stored in JournalReader(directory).events():
        last = stored.id
        if stored.event.type in _SHOWN_TYPES:
            event = stored.event
            shown.append(
                {
                    "elapsed": round(event.at - origin, 3),
                    "type": event.type.value,
                    "name": event.name,
                    "detail": event.detail,
                }
            )
            del shown[:-_EVENTS_SHOWN]
    return shown, last
