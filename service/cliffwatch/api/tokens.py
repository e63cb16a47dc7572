"""/tokens: create, list and revoke API tokens."""

from fastapi import APIRouter
from pydantic import BaseModel

from cliffwatch.base.errors import Code
from cliffwatch.http.context import API_PREFIX, Admin, Context, ShortId
from cliffwatch.http.paging import Limit, Page, PageToken, decode_page, page_of
from cliffwatch.http.problems import responses
from cliffwatch.http.route import ApiRoute
from cliffwatch.http.times import Time
from cliffwatch.http.token_resource import TokenRequest
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


@router.delete("/tokens/{token_id}", status_code=204, responses=responses(Code.NOT_FOUND, Code.CONFLICT))
def delete_token(token_id: ShortId, services: Context, caller: Admin) -> None:
    """Revoke a token at once and for good. The last token of scope admin cannot be revoked."""
    services.tokens.revoke(token_id)


def _show(row: TokenRow) -> TokenBody:
    return TokenBody(id=row.id, name=row.name, scope=row.scope, created_at=row.created_at, revoked_at=row.revoked_at)
