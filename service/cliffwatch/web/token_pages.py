"""Page of the API tokens: who has which, a form that makes one, and a button that revokes one."""

from fastapi import APIRouter, Request, Response
from pydantic import ValidationError

from cliffwatch.app.tokens import NewToken
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.http.context import Context, Services, ShortId
from cliffwatch.http.paging import LIST_LIMIT
from cliffwatch.http.token_resource import TokenRequest
from cliffwatch.model.scope import Scope
from cliffwatch.store.queries import tokens_page
from cliffwatch.web.page import PageRoute, go_to, show
from cliffwatch.web.session import Administering, AdminVisitor, Form, Visitor

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/tokens")
def show_tokens(request: Request, services: Context, visitor: AdminVisitor) -> Response:
    """All tokens without their text, those that are revoked too."""
    return _tokens(request, services, visitor)


@router.post("/tokens")
def make_token(request: Request, services: Context, visitor: Administering, form: Form) -> Response:
    """Make a token. Its text is on the page that answers, and nowhere else."""
    try:
        asked = TokenRequest.model_validate({name: form.get(name, "") for name in TokenRequest.model_fields})
    except ValidationError as error:
        problem = Problem(Code.BAD_REQUEST, "the form is not valid", faults_of(error))
        return _tokens(request, services, visitor, form=form, problem=problem)
    return _tokens(request, services, visitor, made=services.tokens.create(asked.name, Scope.of(asked.scope)))


@router.post("/tokens/{token_id}/revoke")
def revoke_token(request: Request, token_id: ShortId, services: Context, visitor: Administering) -> Response:
    """Revoke a token at once and for good."""
    try:
        services.tokens.revoke(token_id)
    except Problem as problem:
        return _tokens(request, services, visitor, problem=problem)
    return go_to("/tokens")


def _tokens(
    request: Request,
    services: Services,
    visitor: Visitor,
    *,
    made: NewToken | None = None,
    form: dict[str, str] | None = None,
    problem: Problem | None = None,
) -> Response:
    with services.database.snapshot() as session:
        listed = tokens_page(session, LIST_LIMIT)
    status = 200 if problem is None else problem.kind.status
    scopes = [scope.label for scope in Scope]
    return show(
        request,
        "tokens.html",
        visitor,
        status,
        tokens=listed,
        made=made,
        form=form or {},
        problem=problem,
        scopes=scopes,
    )
