"""/tokens and /login-links: create, list and revoke API tokens; log a browser in with one."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from cliffwatch.base.errors import Code
from cliffwatch.http.context import API_PREFIX, Admin, Context, Reader, ShortId
from cliffwatch.http.paging import Limit, Page, PageToken, decode_page, page_of
from cliffwatch.http.problems import responses
from cliffwatch.http.route import ApiRoute
from cliffwatch.http.times import Time
from cliffwatch.http.token_resource import TokenRequest
from cliffwatch.model.document import Strict
from cliffwatch.model.scope import Scope
from cliffwatch.store.models import TokenRow
from cliffwatch.store.queries import tokens_page

router = APIRouter(prefix=API_PREFIX, route_class=ApiRoute, tags=["tokens"])
_SORT, _KEY = "tokens:created_at,id", (float, str)


class TokenBody(BaseModel):
    """A token without its secret."""

    id: str
    name: str
    scope: str
    created_at: Time
    revoked_at: Time | None


class NewToken(TokenBody):
    """A token with its text, which is shown this once."""

    token: str


@router.post("/tokens", status_code=201)
def make_token(request: TokenRequest, services: Context, caller: Admin) -> NewToken:
    """Make a token. Its text is in this answer and nowhere else."""
    made = services.tokens.create(request.name, Scope.of(request.scope))
    return NewToken(
        id=made.id,
        name=made.name,
        scope=made.scope.label,
        created_at=made.created_at,
        revoked_at=None,
        token=made.text,
    )


@router.get("/tokens", responses=responses(Code.PAGE_TOKEN_INVALID))
def list_tokens(services: Context, caller: Admin, limit: Limit = 50, page: PageToken = None) -> Page[TokenBody]:
    """All tokens, revoked ones too, in the order in which they were made."""
    after = decode_page(page, _SORT, _KEY)
    with services.database.snapshot() as session:
        rows = tokens_page(session, limit + 1, after)
    return page_of(rows, limit, _SORT, lambda row: (row.created_at, row.id), _show)


class LoginLinkRequest(Strict):
    """The page that a link leads to, by its path."""

    next: Annotated[str, Field(max_length=2000)] = "/runs"


class LoginLink(BaseModel):
    """Link that logs a browser in once, within ten minutes, with the token that asked for it: its path."""

    path: str


@router.post("/login-links", status_code=201)
def make_login_link(request: Request, wanted: LoginLinkRequest, services: Context, caller: Reader) -> LoginLink:
    """Make a link that logs a browser in once, so that no token is in its address."""
    token = request.headers["authorization"].partition(" ")[2].strip()
    return LoginLink(path=f"/login?{urlencode({'code': services.login_links.make(token), 'next': wanted.next})}")


@router.delete("/tokens/{token_id}", status_code=204, responses=responses(Code.NOT_FOUND, Code.CONFLICT))
def delete_token(token_id: ShortId, services: Context, caller: Admin) -> None:
    """Revoke a token at once and for good. The last token of scope admin cannot be revoked."""
    services.tokens.revoke(token_id)


def _show(row: TokenRow) -> TokenBody:
    return TokenBody(id=row.id, name=row.name, scope=row.scope, created_at=row.created_at, revoked_at=row.revoked_at)
