"""Schedules, drives, logging in and out, and the files that pages are made with."""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import ValidationError

from cliffwatch.api import drives, schedules, workloads
from cliffwatch.api.context import Context, Services, ShortId
from cliffwatch.api.pages import LIST_LIMIT
from cliffwatch.errors import Code, FieldFault, Problem
from cliffwatch.report.html import THEME
from cliffwatch.runs.faults import faults_of
from cliffwatch.store.tokens import find_token
from cliffwatch.web.page import PageRoute, go_to, local_path, show
from cliffwatch.web.session import AnyVisitor, Form, Operating, Visitor, is_from_here, log_in, log_out, visitor_of
from cliffwatch.web.start import TARGET_KINDS, target_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_HERE = Path(__file__).parent
_LIBRARIES = _HERE / "assets" / "node_modules"
#: Every file that pages may ask for, and nothing else.
FILES = {
    "theme.css": (THEME, "text/css"),
    "app.css": (_HERE / "static" / "app.css", "text/css"),
    "app.js": (_HERE / "static" / "app.js", "text/javascript"),
    "format.js": (_HERE / "static" / "format.js", "text/javascript"),
    "live.js": (_HERE / "static" / "live.js", "text/javascript"),
    "icon.svg": (_HERE / "static" / "icon.svg", "image/svg+xml"),
    "htmx.js": (_LIBRARIES / "htmx.org" / "dist" / "htmx.min.js", "text/javascript"),
    "uplot.js": (_LIBRARIES / "uplot" / "dist" / "uPlot.iife.min.js", "text/javascript"),
    "uplot.css": (_LIBRARIES / "uplot" / "dist" / "uPlot.min.css", "text/css"),
}


@router.get("/login")
def show_login(request: Request, services: Context, after: Annotated[str, Query(alias="next")] = "/runs") -> Response:
    if visitor_of(request, services) is not None:
        return go_to(local_path(after))
    return show(request, "login.html", None, next=local_path(after), problem="")


@router.post("/login")
def take_login(request: Request, services: Context, form: Form) -> Response:
    """The token comes in the body, never in an address."""
    token, after = form.get("token", "").strip(), local_path(form.get("next", "/runs"))
    if not is_from_here(request):
        raise Problem(Code.FORBIDDEN, "the form did not come from this page; load the page again")
    with services.database.snapshot() as session:
        row = find_token(session, token)
    if row is None:
        words = "This token is not known here, or it was revoked."
        return show(request, "login.html", None, 401, next=after, problem=words)
    answer = go_to(after)
    log_in(answer, request, token)
    return answer


@router.post("/logout")
def take_logout(request: Request) -> Response:
    if not is_from_here(request):
        raise Problem(Code.FORBIDDEN, "the form did not come from this page; load the page again")
    answer = go_to("/login")
    log_out(answer)
    return answer


@router.get("/drives")
def show_drives(request: Request, services: Context, visitor: AnyVisitor) -> Response:
    """The machine's drives with their health, and what the safety gate says to each."""
    listed, unknown = drives.examined_drives(services)
    return show(request, "drives.html", visitor, drives=listed, unknown=unknown)


@router.get("/schedules")
def show_schedules(request: Request, services: Context, visitor: AnyVisitor) -> Response:
    return _schedules(request, services, visitor, {})


@router.post("/schedules")
def add_schedule(request: Request, services: Context, visitor: Operating, form: Form) -> Response:
    try:
        schedules.create_schedule(_schedule(form), Response(), services, visitor.caller)
    except Problem as problem:
        return _schedules(request, services, visitor, form, problem)
    return go_to("/schedules")


@router.post("/schedules/{schedule_id}/enabled")
def enable_schedule(schedule_id: ShortId, services: Context, visitor: Operating, form: Form) -> Response:
    change = schedules.ScheduleChange(enabled=form.get("enabled") == "yes")
    schedules.change_schedule(schedule_id, change, services, visitor.caller)
    return go_to("/schedules")


@router.post("/schedules/{schedule_id}/delete")
def delete_schedule(schedule_id: ShortId, services: Context, visitor: Operating) -> Response:
    schedules.delete_schedule(schedule_id, services, visitor.caller)
    return go_to("/schedules")


def _schedule(form: dict[str, str]) -> schedules.ScheduleRequest:
    """Raises Problem(bad_request) that names the fields at fault."""
    kind = form.get("target_kind", "")
    if kind not in TARGET_KINDS or kind == "device":
        raise Problem(
            Code.BAD_REQUEST,
            "what the form says is not valid",
            [
                FieldFault(
                    "target",
                    "choose directory, broker or synthetic; a drive wants its sentence typed, so use the command",
                )
            ],
        )
    body: dict[str, Any] = {
        "name": form.get("name", ""),
        "workload": form.get("workload", ""),
        "target": target_of(kind, form),
        "trigger": {
            "kind": "cron",
            "expression": form.get("expression", "").strip(),
            "time_zone": form.get("time_zone", "").strip() or "UTC",
        },
    }
    try:
        return schedules.ScheduleRequest.model_validate(body)
    except ValidationError as error:
        raise Problem(Code.BAD_REQUEST, "what the form says is not valid", faults_of(error)) from error


def _schedules(
    request: Request, services: Services, visitor: Visitor, form: dict[str, str], problem: Problem | None = None
) -> Response:
    return show(
        request,
        "schedules.html",
        visitor,
        200 if problem is None else problem.kind.status,
        schedules=schedules.list_schedules(services, visitor.caller, LIST_LIMIT).items,
        workloads=workloads.list_workloads(services, visitor.caller, LIST_LIMIT).items,
        form=form,
        problem=problem,
    )


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file of ours or of a library, with the tag that says which version it is."""

    content: bytes
    media_type: str
    tag: str


@router.get("/static/{name}")
def show_file(request: Request, name: str) -> Response:
    """Asked for again each time, and sent again only when it changed."""
    found = _file(name)
    headers = {"ETag": found.tag, "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}
    if request.headers.get("if-none-match") == found.tag:
        return Response(status_code=304, headers=headers)
    return Response(found.content, media_type=found.media_type, headers=headers)


@cache
def _file(name: str) -> StaticFile:
    """Raises Problem(not_found), also for a library that is not installed."""
    path, media_type = FILES.get(name, (None, ""))
    if path is None or not path.exists():
        raise Problem(Code.NOT_FOUND, f"there is no file {name}; libraries are installed by `make assets`")
    content = path.read_bytes()
    return StaticFile(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:16]}"')
