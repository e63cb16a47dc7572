"""Events and reports of a journal, as the API and the pages show them."""

from pathlib import Path
from typing import Any

from fastapi import Response
from pydantic import BaseModel

from cliffwatch.http.context import Services, find_run
from cliffwatch.http.times import Time
from cliffwatch.journal import EventType, StoredEvent, files
from cliffwatch.journal.event_text import event_text

#: The report's scripts may run, but not with the rights of the service's own pages.
_REPORT_HEADERS = {"Content-Security-Policy": "sandbox allow-scripts allow-downloads"}


class EventBody(BaseModel):
    """An event of a run; ids count from 1. `text` is what happened, in words."""

    id: int
    at: Time
    type: EventType
    name: str
    detail: dict[str, Any]
    text: str


def event_body(stored: StoredEvent) -> EventBody:
    event = stored.event
    text = event_text(event.type.value, event.name, event.detail)
    return EventBody(id=stored.id, at=event.at, type=event.type, name=event.name, detail=event.detail, text=text)


def directory_of(services: Services, run_id: str) -> Path:
    return Path(find_run(services, run_id).directory)


def report_page(services: Services, run_id: str) -> Response:
    """Response with report.html. Raises Problem: not_found, report_not_ready."""
    content = services.reports.read(run_id, files.REPORT_HTML)
    return Response(content, media_type="text/html", headers=_REPORT_HEADERS)


def report_document(services: Services, run_id: str) -> Response:
    """Response with report.json. Raises Problem: not_found, report_not_ready."""
    return Response(services.reports.read(run_id, files.REPORT_JSON), media_type="application/json")


def report_picture(services: Services, run_id: str) -> Response:
    """Response with report.png, drawn when it is first requested. Raises Problem: not_found, report_not_ready."""
    return Response(services.reports.picture(run_id), media_type="image/png")
