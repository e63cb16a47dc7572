"""Shared by all pages: templates, strict headers, and error pages.

Scripts and styles come from this origin alone, and none is written into a page, so the policy allows neither inline
scripts nor inline styles.
"""

import shlex
from collections.abc import Callable, Coroutine
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from jinja2 import Environment
from pydantic import BeforeValidator

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.units import format_ratio
from cliffwatch.base.version import VERSION
from cliffwatch.http.problems import database_problem, disk_problem, request_faults
from cliffwatch.http.times import moment_of
from cliffwatch.model.target import field_words
from cliffwatch.report.html import VERDICTS, environment
from cliffwatch.store.database import DATABASE_ERRORS
from cliffwatch.web.drive_figures import health_figures
from cliffwatch.web.session import FORM_WORD, NotLoggedIn, Visitor, visitor_of

_TEMPLATES = Path(__file__).parent / "templates"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
#: Empty text as None: a form sends it for a field that was not chosen.
EMPTY_IS_NONE = BeforeValidator(lambda text: text or None)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def show(request: Request, template: str, visitor: Visitor | None, status: int = 200, **content: Any) -> HTMLResponse:
    """Render a page. `content` holds the variables of its template."""
    page = _ENVIRONMENT.get_template(template).render(
        path=request.url.path, visitor=visitor, version=VERSION, form_word_field=FORM_WORD, **content
    )
    return HTMLResponse(page.encode("utf-8", "replace"), status, HEADERS)


def go_to(path: str) -> RedirectResponse:
    """Redirect after a form: the browser requests `path`."""
    return RedirectResponse(path, status_code=303, headers=HEADERS)


class PageRoute(APIRoute):
    """A route that answers problems with a page: the login for a user not logged in, else an error with what to do."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def shown(request: Request) -> Response:
            try:
                return await handle(request)
            except NotLoggedIn:
                return _to_login(request)
            except RequestValidationError as error:
                return show_problem(
                    request, Problem(Code.BAD_REQUEST, "the address is not valid", request_faults(error))
                )
            except Problem as problem:
                return show_problem(request, problem)
            except DATABASE_ERRORS as error:
                # Without the visitor, who is looked up in the database.
                away = database_problem(error)
                return show(request, "problem.html", None, away.kind.status, problem=away, back=None)
            except OSError as error:
                refusal = disk_problem(error)
                if refusal is None:
                    raise
                return show_problem(request, refusal)

        return shown


def show_problem(request: Request, problem: Problem) -> HTMLResponse:
    """Error page: what went wrong and what to do about it."""
    services = getattr(request.app.state, "services", None)
    # After an internal error, the look-up of the visitor may fail, too.
    visitor = visitor_of(request, services) if services is not None and problem.code is not Code.INTERNAL else None
    return show(request, "problem.html", visitor, problem.kind.status, problem=problem, back=_page_before(request))


def _page_before(request: Request) -> str | None:
    """Path of the page whose form or link led here (Referer); None for another site, this page, or no Referer."""
    try:
        before = urlsplit(request.headers.get("referer", ""))
    except ValueError:
        return None
    if before.netloc != request.url.netloc or before.path == request.url.path:
        return None
    return local_path(before.path + (f"?{before.query}" if before.query else ""))


def _to_login(request: Request) -> Response:
    """Redirect to the login, which leads back; if a script requested a fragment, its whole page is redirected."""
    wanted = request.url.path if request.method == "GET" else "/runs"
    if request.url.query and request.method == "GET":
        wanted += f"?{request.url.query}"
    if request.headers.get("hx-request") == "true":
        here = request.headers.get("hx-current-url", "")
        path = "/" + here.split("/", 3)[3] if here.count("/") >= 3 else "/runs"
        return Response(status_code=401, headers={**HEADERS, "HX-Redirect": f"/login?next={quote(path)}"})
    if not request.headers.get("accept", "text/html").startswith(("text/html", "*/*")):
        return Response(status_code=401, headers=HEADERS)
    return go_to(f"/login?next={quote(wanted)}")


def local_path(text: str) -> str:
    """Path to go to after the login: `text` if it is a path of this service, else `/runs`."""
    is_ours = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable()
    return text if is_ours and not text.startswith("/login") else "/runs"


def moment(seconds: float | datetime | None) -> str:
    """Seconds since the epoch as `2026-11-21 07:34:13 UTC`; a dash for none."""
    if seconds is None:
        return "–"
    when = seconds if isinstance(seconds, datetime) else moment_of(seconds)
    return when.strftime("%Y-%m-%d %H:%M:%S UTC")


def _page_environment() -> Environment:
    made = environment(_TEMPLATES)
    made.filters["moment"] = moment
    made.filters["ratio"] = format_ratio
    made.filters["field_words"] = field_words
    made.filters["shell"] = shlex.join
    made.filters["health_figures"] = health_figures
    made.globals["verdict_marks"] = {str(name): mark for name, (mark, _) in VERDICTS.items()}
    return made


_ENVIRONMENT = _page_environment()
