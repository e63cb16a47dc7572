"""Page of the notification channels: where each sends and of what, and a button that sends a test."""

from fastapi import APIRouter, Request, Response

from cliffwatch.base.errors import Code, Problem
from cliffwatch.http.context import Context, Services
from cliffwatch.stack.channels import read_channels, secret_of, with_secrets
from cliffwatch.stack.trial import send_trial
from cliffwatch.web.page import PageRoute, show
from cliffwatch.web.session import AnyVisitor, Operating, Visitor

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/notifications")
def show_channels(request: Request, services: Context, visitor: AnyVisitor) -> Response:
    """All channels, without their secrets."""
    return _channels(request, services, visitor)


@router.post("/notifications/{name}/test")
def test_channel(request: Request, name: str, services: Context, visitor: Operating) -> Response:
    """Send a notification to a channel, and say whether it was delivered."""
    found = next((each for each in read_channels(services.settings) if each.name == name), None)
    if found is None:
        raise Problem(Code.NOT_FOUND, f"no channel has the name {name!r}; /notifications lists them")
    try:
        secret_of(found)
        send_trial(services.settings, found, services.clock)
    except Problem as problem:
        return _channels(request, services, visitor, problem=problem)
    return _channels(request, services, visitor, delivered=name)


def _channels(
    request: Request,
    services: Services,
    visitor: Visitor,
    *,
    delivered: str | None = None,
    problem: Problem | None = None,
) -> Response:
    channels = read_channels(services.settings)
    _, warnings = with_secrets(channels)
    status = 200 if problem is None else problem.kind.status
    shown = {"channels": channels, "warnings": warnings, "delivered": delivered, "problem": problem}
    return show(request, "notifications.html", visitor, status, **shown)
