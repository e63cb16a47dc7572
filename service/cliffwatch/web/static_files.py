"""Static files of the pages, from a fixed list."""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request, Response

from cliffwatch.base.errors import Code, Problem
from cliffwatch.report.html import THEME
from cliffwatch.web.page import PageRoute

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_HERE = Path(__file__).parent
_LIBRARIES = _HERE / "assets" / "node_modules"
#: Every file that pages may ask for, and nothing else.
FILES = {
    "theme.css": (THEME, "text/css"),
    "app.css": (_HERE / "static" / "app.css", "text/css"),
    "app.js": (_HERE / "static" / "app.js", "text/javascript"),
    "charts.js": (_HERE / "static" / "charts.js", "text/javascript"),
    "format.js": (_HERE / "static" / "format.js", "text/javascript"),
    "live.js": (_HERE / "static" / "live.js", "text/javascript"),
    "icon.svg": (_HERE / "static" / "icon.svg", "image/svg+xml"),
    "htmx.js": (_LIBRARIES / "htmx.org" / "dist" / "htmx.min.js", "text/javascript"),
    "uplot.js": (_LIBRARIES / "uplot" / "dist" / "uPlot.iife.min.js", "text/javascript"),
    "uplot.css": (_LIBRARIES / "uplot" / "dist" / "uPlot.min.css", "text/css"),
}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file of the service or of a library, with the ETag of its version."""

    content: bytes
    media_type: str
    tag: str


@router.get("/static/{name}")
def show_file(request: Request, name: str) -> Response:
    """Static file; browsers revalidate it each time by its ETag, and it is sent again only when it changed."""
    found = _file(name)
    headers = {"ETag": found.tag, "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}
    if request.headers.get("if-none-match") == found.tag:
        return Response(status_code=304, headers=headers)
    return Response(found.content, media_type=found.media_type, headers=headers)


@cache
def _file(name: str) -> StaticFile:
    """Static file by name. Raises Problem(not_found), also for a library that is not installed."""
    path, media_type = FILES.get(name, (None, ""))
    if path is None or not path.exists():
        raise Problem(Code.NOT_FOUND, f"there is no file {name}; libraries are installed by `make assets`")
    content = path.read_bytes()
    return StaticFile(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:16]}"')
