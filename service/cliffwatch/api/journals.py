"""/runs/{run_id}/events, /windows, /findings and the reports: the contents of a run's journal."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from cliffwatch.base.errors import Code
from cliffwatch.http.context import API_PREFIX, Context, Reader, RunId, find_run
from cliffwatch.http.journal_resource import (
    EventBody,
    directory_of,
    event_body,
    report_document,
    report_page,
    report_picture,
)
from cliffwatch.http.paging import Limit, Page, PageToken, decode_page, page_of, page_within
from cliffwatch.http.problems import responses
from cliffwatch.http.route import ApiRoute
from cliffwatch.http.run_resource import Window, window_resource
from cliffwatch.http.times import Time
from cliffwatch.journal import JournalReader, JournalWindow
from cliffwatch.store.models import FindingRow
from cliffwatch.store.queries import findings_page

router = APIRouter(prefix=API_PREFIX, route_class=ApiRoute, tags=["journals"])
_EVENTS, _WINDOWS = "events:id", "windows:seq"
_FINDINGS, _FINDINGS_KEY = "findings:at,run_id,event_id:descending", (float, str, int)
WINDOW_LIMIT = 1000
_NUMBER_LIMIT = 2**31 - 1
#: Estimated size of a number with its separators.
_NUMBER_BYTES = 24


After = Annotated[int | None, Query(ge=0, le=_NUMBER_LIMIT)]


class FindingBody(BaseModel):
    """A finding; `name` is its kind and `event_id` the id of its event in the run's journal."""

    run_id: str
    event_id: int
    at: Time
    name: str
    detail: dict[str, Any]


@router.get("/runs/{run_id}/events", responses=responses(Code.NOT_FOUND, Code.PAGE_TOKEN_INVALID))
def list_events(
    run_id: RunId, services: Context, caller: Reader, after: After = None, limit: Limit = 100, page: PageToken = None
) -> Page[EventBody]:
    """Events in the order in which they were written, starting after the event with the id `after`."""
    begin = _position(after, page, _EVENTS, 0)
    reader = JournalReader(directory_of(services, run_id))
    return page_within(
        reader.events(after_id=begin),
        limit,
        _EVENTS,
        lambda stored: [stored.id],
        event_body,
        lambda stored, _: stored.size_bytes,
    )


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
    """Windows in order, starting after the window with the `seq` `after`."""
    begin = _position(after, page, _WINDOWS, -1)
    reader = JournalReader(directory_of(services, run_id))

    def shown(window: JournalWindow) -> Window:
        if not histograms:
            return window_resource(window)
        encoded = {name: histogram.encode() for name, histogram in reader.histograms(window).items()}
        return window_resource(window, encoded)

    return page_within(reader.windows(begin + 1), limit, _WINDOWS, lambda window: [window.seq], shown, _size_bytes)


@router.get("/runs/{run_id}/findings", responses=responses(Code.NOT_FOUND, Code.PAGE_TOKEN_INVALID))
def list_run_findings(
    run_id: RunId, services: Context, caller: Reader, limit: Limit = 50, page: PageToken = None
) -> Page[FindingBody]:
    """Findings of a run, newest first."""
    find_run(services, run_id)
    return _findings(services, limit, page, run_id)


@router.get("/findings", responses=responses(Code.PAGE_TOKEN_INVALID), tags=["findings"])
def list_findings(services: Context, caller: Reader, limit: Limit = 50, page: PageToken = None) -> Page[FindingBody]:
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
    return report_document(services, run_id)


@router.get(
    "/runs/{run_id}/report.html",
    responses={
        **responses(Code.NOT_FOUND, Code.REPORT_NOT_READY),
        200: {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "report.html"},
    },
    response_class=Response,
)
def show_report_page(run_id: RunId, services: Context, caller: Reader) -> Response:
    """The run's report as a self-contained HTML page."""
    return report_page(services, run_id)


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
    """The run's report as one picture, drawn when it is first requested."""
    return report_picture(services, run_id)


def _size_bytes(window: JournalWindow, shown: Window) -> int:
    """Estimated bytes of a window in an answer: its names, numbers and histograms."""
    parts: list[Mapping[str, object]] = [window.counters, window.gauges, window.latency, *window.latency.values()]
    figures = sum(len(name) + _NUMBER_BYTES for part in parts for name in part)
    return len(window.phase) + figures + sum(map(len, (shown.histograms or {}).values()))


def _position(after: int | None, page: str | None, sort: str, start: int) -> int:
    """Event id, or seq of a window, after which a page begins: from its page token, else `after`, else `start`."""
    key = decode_page(page, sort, (int,))
    if key is not None:
        return int(key[0])
    return start if after is None else after


def _findings(services: Context, limit: int, page: str | None, run_id: str | None) -> Page[FindingBody]:
    after = decode_page(page, _FINDINGS, _FINDINGS_KEY)
    with services.database.snapshot() as session:
        rows = findings_page(session, limit + 1, after, run_id)
    return page_of(rows, limit, _FINDINGS, lambda row: (row.at, row.run_id, row.event_id), _finding)


def _finding(row: FindingRow) -> FindingBody:
    return FindingBody(run_id=row.run_id, event_id=row.event_id, at=row.at, name=row.name, detail=row.detail)
