"""Page of the machine's drives: their health, and the safety gate's objections to each."""

from fastapi import APIRouter, Request, Response

from cliffwatch.http.context import Context
from cliffwatch.http.drive_resource import listed_drives
from cliffwatch.web.page import PageRoute, show
from cliffwatch.web.session import AnyVisitor

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/drives")
def show_drives(request: Request, services: Context, visitor: AnyVisitor) -> Response:
    """Page of the machine's drives with their health, and the safety gate's objections to each."""
    listed, unknown = listed_drives(services)
    return show(request, "drives.html", visitor, drives=listed, unknown=unknown)
