"""Logging in and out."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from cliffwatch.base.errors import Code, Problem
from cliffwatch.http.context import Context
from cliffwatch.web.page import PageRoute, go_to, local_path, show
from cliffwatch.web.session import Form, is_from_here, is_typed, log_in, log_out, visitor_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/login")
def show_login(
    request: Request,
    services: Context,
    after: Annotated[str, Query(alias="next")] = "/runs",
    code: Annotated[str, Query(description="code of a link that logs in once")] = "",
) -> Response:
    if code:
        return _take_code(request, services, code, local_path(after))
    if visitor_of(request, services) is not None:
        return go_to(local_path(after))
    return show(request, "login.html", None, next=local_path(after), problem="")


def _take_code(request: Request, services: Context, code: str, after: str) -> Response:
    """Log in by a link from a terminal. One on a page of another site could log the visitor in with another token."""
    if not is_typed(request):
        words = "This link was followed from another site. Copy it into the address line, or log in with a token."
        return show(request, "login.html", None, 403, next=after, problem=words)
    token = services.login_links.take(code)
    if token is None or services.tokens.caller_of(token) is None:
        words = "This link was used, or is older than ten minutes. `cliffwatch open` prints another."
        return show(request, "login.html", None, 401, next=after, problem=words)
    answer = go_to(after)
    log_in(answer, request, token)
    return answer


@router.post("/login")
def take_login(request: Request, services: Context, form: Form) -> Response:
    """Log in with the token of the form, which is in the body, never in a URL."""
    token, after = form.get("token", "").strip(), local_path(form.get("next", "/runs"))
    if not is_from_here(request):
        raise Problem(Code.FORBIDDEN, "the form did not come from this page; load the page again")
    if services.tokens.caller_of(token) is None:
        words = "This token is unknown, or it was revoked."
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
