"""/runs/{run_id}/events, /windows, /findings and the reports: what stands in a run's journal."""

from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from cliffwatch.api.context import API_PREFIX, Context, Reader, RunId, find_run
from cliffwatch.api.pages import Limit, Page, PageToken, decode_page, encode_page, page_of
from cliffwatch.api.problems import responses
from cliffwatch.api.route import ApiRoute
from cliffwatch.api.run_resource import Window, window_resource
from cliffwatch.api.times import Time
from cliffwatch.errors import Code, Problem
from cliffwatch.journal import EventType, JournalReader, StoredEvent, files
from cliffwatch.report.picture_errand import picture_of
from cliffwatch.report.provisional import place_of_report
from cliffwatch.runs.states import RunState
from cliffwatch.store.models import FindingRow
from cliffwatch.store.queries import findings_page

router = APIRouter(prefix=API_PREFIX, route_class=ApiRoute, tags=["journals"])
_EVENTS, _WINDOWS = "events:id", "windows:seq"
_FINDINGS, _FINDINGS_KEY = "findings:at,run_id,event_id:descending", (float, str, int)
WINDOW_LIMIT = 1000
_NUMBER_LIMIT = 2**31 - 1

#: The report's scripts may run, but not with the rights of the service's own pages.
_REPORT_HEADERS = {"Content-Security-Policy": "sandbox allow-scripts allow-downloads"}

After = Annotated[int | None, Query(ge=0, le=_NUMBER_LIMIT)]


class EventBody(BaseModel):
    """An event of a run; ids count from 1."""

    id: int
    at: Time
    type: EventType
    name: str
    detail: dict[str, Any]


class Finding(BaseModel):
    """A finding; `name` is its kind and `event_id` the event that it is."""

    run_id: str
    event_id: int
    at: Time
    name: str
    detail: dict[str, Any]


@router.get("/runs/{run_id}/events", responses=responses(Code.NOT_FOUND, Code.PAGE_TOKEN_INVALID))
def list_events(
    run_id: RunId, services: Context, caller: Reader, after: After = None, limit: Limit = 100, page: PageToken = None
) -> Page[EventBody]:
    """Events in the order in which they were written, behind the event `after`."""
    begin = _position(after, page, _EVENTS, 0)
    reader = JournalReader(_directory(services, run_id))
    found = list(islice((stored for stored in reader.events() if stored.id > begin), limit + 1))
    return page_of(found, limit, _EVENTS, lambda stored: [stored.id], event_body)


@router.get("/runs/{run_id}/windows", responses=responses(Code.NOT_FOUND, Code.PAGE_TOKEN_INVALID))
def list_windows(
    run_id: RunId,
    services: Context,
    caller: Reader,
    after: After = None,
    limit: Annotated[int, Query(ge=1, le=WINDOW_LIMIT)] = 100,
    page: PageToken = None,
    histograms: Annotated[bool, Query(description="with the exact histograms, base64")] = False,
) -> Page[Window]:
    """Windows in order, behind the window `after`."""
    begin = _position(after, page, _WINDOWS, -1)
    reader = JournalReader(_directory(services, run_id))
    found = list(islice(reader.windows(begin + 1), limit + 1))
    items = [
        window_resource(
            window,
            {name: histogram.encode() for name, histogram in reader.histograms(window).items()} if histograms else None,
        )
        for window in found[:limit]
    ]
    return Page(items=items, next_page=encode_page(_WINDOWS, [items[-1].seq]) if len(found) > limit else None)


@router.get("/runs/{run_id}/findings", responses=responses(Code.NOT_FOUND, Code.PAGE_TOKEN_INVALID))
def list_run_findings(
    run_id: RunId, services: Context, caller: Reader, limit: Limit = 50, page: PageToken = None
) -> Page[Finding]:
    """Findings of a run, newest first."""
    find_run(services, run_id)
    return _findings(services, limit, page, run_id)


@router.get("/findings", responses=responses(Code.PAGE_TOKEN_INVALID), tags=["findings"])
def list_findings(services: Context, caller: Reader, limit: Limit = 50, page: PageToken = None) -> Page[Finding]:
    """Findings of all runs, newest first."""
    return _findings(services, limit, page, None)


@router.get(
    "/runs/{run_id}/report",
    responses={
        **responses(Code.NOT_FOUND, Code.REPORT_NOT_READY),
        200: {"content": {"application/json": {"schema": {"type": "object"}}}, "description": "report.json"},
    },
    response_class=Response,
)
def show_report(run_id: RunId, services: Context, caller: Reader) -> Response:
    """The run's report as JSON."""
    return Response(_report(services, run_id, files.REPORT_JSON), media_type="application/json")


@router.get(
    "/runs/{run_id}/report.html",
    responses={
        **responses(Code.NOT_FOUND, Code.REPORT_NOT_READY),
        200: {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "report.html"},
    },
    response_class=Response,
)
def show_report_page(run_id: RunId, services: Context, caller: Reader) -> Response:
    """The run's report as a page that needs nothing else."""
    content = _report(services, run_id, files.REPORT_HTML)
    return Response(content, media_type="text/html", headers=_REPORT_HEADERS)


@router.get(
    "/runs/{run_id}/report.png",
    responses={
        **responses(Code.NOT_FOUND, Code.REPORT_NOT_READY),
        200: {
            "content": {"image/png": {"schema": {"type": "string", "format": "binary"}}},
            "description": "report.png",
        },
    },
    response_class=Response,
)
def show_report_picture(run_id: RunId, services: Context, caller: Reader) -> Response:
    """The run's report in one picture, drawn when it is first asked for."""
    cache = services.settings.state_directory / "cache" / "matplotlib"
    directory = _directory(services, run_id)
    return Response(picture_of(directory, cache, _place_of_report(services, run_id)), media_type="image/png")


def event_body(stored: StoredEvent) -> EventBody:
    event = stored.event
    return EventBody(id=stored.id, at=event.at, type=event.type, name=event.name, detail=event.detail)


def _directory(services: Context, run_id: str) -> Path:
    return Path(find_run(services, run_id).directory)


def _place_of_report(services: Context, run_id: str) -> Path:
    row = find_run(services, run_id)
    return place_of_report(Path(row.directory), is_over=row.state == RunState.FINISHED.value)


def _position(after: int | None, page: str | None, sort: str, start: int) -> int:
    """Behind which number to go on: a page token comes before `after`."""
    key = decode_page(page, sort, (int,))
    if key is not None:
        return int(key[0])
    return start if after is None else after


def _findings(services: Context, limit: int, page: str | None, run_id: str | None) -> Page[Finding]:
    after = decode_page(page, _FINDINGS, _FINDINGS_KEY)
    with services.database.snapshot() as session:
        rows = findings_page(session, limit + 1, after, run_id)
    return page_of(rows, limit, _FINDINGS, lambda row: (row.at, row.run_id, row.event_id), _finding)


def _finding(row: FindingRow) -> Finding:
    return Finding(run_id=row.run_id, event_id=row.event_id, at=row.at, name=row.name, detail=row.detail)


def _report(services: Context, run_id: str, name: str) -> bytes:
    try:
        return (_place_of_report(services, run_id) / name).read_bytes()
    except FileNotFoundError as error:
        raise Problem(
            Code.REPORT_NOT_READY,
            f"run {run_id} has no {name} yet; it is made when the load ends, and by `cliffwatch run report {run_id}`",
        ) from error
