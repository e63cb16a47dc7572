"""Browser sessions: the same token as the API's, kept in a cookie that scripts cannot read.

Nothing is stored on the server, so a restart logs no user out and a revoked token is refused at once. A form that
changes something has a word derived from the token, which another site cannot know, and must come from this origin.
"""

import hashlib
import hmac
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import parse_qsl, urlsplit

from fastapi import Depends, Request, Response

from cliffwatch.app.tokens import Caller
from cliffwatch.base.errors import Code, Problem
from cliffwatch.http.context import Context, Services
from cliffwatch.model.scope import Scope

COOKIE = "cliffwatch_token"
#: The hidden field of every form that changes something.
FORM_WORD = "form_word"
_FIELD_LIMIT = 100


@dataclass(frozen=True, slots=True)
class Visitor:
    """Logged-in user of the pages. `form_word` is the CSRF token of this visitor's forms."""

    caller: Caller
    form_word: str

    @property
    def may_operate(self) -> bool:
        return self.caller.scope >= Scope.OPERATE

    @property
    def is_admin(self) -> bool:
        return self.caller.scope >= Scope.ADMIN


class NotLoggedIn(Problem):
    """The browser has no token, or one that is not valid any more."""


def visitor_of(request: Request, services: Services) -> Visitor | None:
    """User of the session cookie; None without a valid one."""
    token = request.cookies.get(COOKIE, "")
    if not token:
        return None
    caller = services.tokens.caller_of(token)
    return None if caller is None else Visitor(caller, form_word_of(token))


def form_word_of(token: str) -> str:
    return hmac.new(token.encode(), b"cliffwatch form", hashlib.sha256).hexdigest()


def _visitor(request: Request, services: Context) -> Visitor:
    visitor = visitor_of(request, services)
    if visitor is None:
        raise NotLoggedIn(Code.UNAUTHENTICATED, "log in with a token first")
    return visitor


AnyVisitor = Annotated[Visitor, Depends(_visitor)]


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a posted form, each once. Raises Problem(bad_request) for a body that is not a form."""
    body = await request.body()
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, strict_parsing=bool(body), max_num_fields=_FIELD_LIMIT
        )
    except ValueError as error:
        raise Problem(Code.BAD_REQUEST, "the form cannot be read; load the page again and repeat") from error
    return dict(pairs)


Form = Annotated[dict[str, str], Depends(form_of)]


def _require_scope(visitor: Visitor, scope: Scope) -> None:
    if visitor.caller.scope < scope:
        yours = visitor.caller.scope.label
        raise Problem(Code.FORBIDDEN, f"this needs a token of scope {scope.label}; yours is of scope {yours}")


def _sender(request: Request, visitor: AnyVisitor, form: Form) -> Visitor:
    """Visitor who sent a form of this page. Raises Problem(forbidden) otherwise."""
    if not is_from_here(request) or not hmac.compare_digest(
        form.get(FORM_WORD, "").encode(), visitor.form_word.encode()
    ):
        raise Problem(Code.FORBIDDEN, "the form did not come from this page as it is now; load the page again")
    return visitor


def _operator(visitor: Annotated[Visitor, Depends(_sender)]) -> Visitor:
    _require_scope(visitor, Scope.OPERATE)
    return visitor


def _admin_sender(visitor: Annotated[Visitor, Depends(_sender)]) -> Visitor:
    _require_scope(visitor, Scope.ADMIN)
    return visitor


def _admin(visitor: AnyVisitor) -> Visitor:
    _require_scope(visitor, Scope.ADMIN)
    return visitor


#: Visitor of scope operate, and of scope admin, who sent a form of this page; visitor of scope admin.
Operating = Annotated[Visitor, Depends(_operator)]
Administering = Annotated[Visitor, Depends(_admin_sender)]
AdminVisitor = Annotated[Visitor, Depends(_admin)]


def is_from_here(request: Request) -> bool:
    """Whether a request is from a page of this origin, by Sec-Fetch-Site, else Origin; true if neither: no browser."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin")
    try:
        return origin is None or urlsplit(origin).netloc == request.headers.get("host")
    except ValueError:
        return False  # no browser writes it so


def is_typed(request: Request) -> bool:
    """Whether a request is from no page of another origin, by Sec-Fetch-Site; true without it: no browser, or no
    trustworthy address."""
    return request.headers.get("sec-fetch-site", "none") in ("none", "same-origin")


def log_in(response: Response, request: Request, token: str) -> None:
    """Set the token as a cookie until the browser is closed. SameSite=Lax: it is sent with links of other sites, so
    that a link in an alert opens its page, but not with their forms."""
    response.set_cookie(COOKIE, token, httponly=True, samesite="lax", secure=request.url.scheme == "https", path="/")


def log_out(response: Response) -> None:
    response.delete_cookie(COOKIE, path="/")
