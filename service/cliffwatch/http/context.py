"""Dependencies of every route: the service's parts, and authentication of the caller."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Path, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from cliffwatch.app.alerts import AlertIntake
from cliffwatch.app.drives import ExaminedDrives
from cliffwatch.app.library import RunLibrary
from cliffwatch.app.login_links import LoginLinks
from cliffwatch.app.reports import ReportService
from cliffwatch.app.retention import Retention
from cliffwatch.app.runs import RunService
from cliffwatch.app.scheduler import Scheduler
from cliffwatch.app.schedules import ScheduleService
from cliffwatch.app.tokens import Caller, TokenService
from cliffwatch.app.workloads import WorkloadService
from cliffwatch.base.clock import Clock
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.faults import NAME_PATTERN, SHORT_ID_PATTERN
from cliffwatch.base.questions import SharedAnswer
from cliffwatch.http.figures import HttpFigures
from cliffwatch.http.stream_places import StreamPlaces
from cliffwatch.model.scope import Scope
from cliffwatch.model.settings import Settings
from cliffwatch.stack.watch import Watch
from cliffwatch.store.database import Database
from cliffwatch.store.models import RunRow
from cliffwatch.store.monitor import DatabaseMonitor
from cliffwatch.store.queries import require_run

API_PREFIX = "/api/v1"
_bearer = HTTPBearer(auto_error=False, description="A token as `cliffwatch token create` prints it.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The parts of a running service. `reconciling_seconds`: for how long the reconciler's present round has lasted."""

    settings: Settings
    clock: Clock
    database: Database
    runs: RunService
    library: RunLibrary
    retention: Retention
    reports: ReportService
    workloads: WorkloadService
    tokens: TokenService
    login_links: LoginLinks
    scheduler: Scheduler
    schedules: ScheduleService
    http: HttpFigures
    alerts: AlertIntake
    watch: Watch
    database_monitor: DatabaseMonitor
    drives: SharedAnswer[ExaminedDrives]
    reconciling_seconds: Callable[[], float]
    streams: StreamPlaces


def not_ready() -> Problem:
    return Problem(Code.NOT_READY, "the service is starting or stopping; try again")


def services_of(request: Request) -> Services:
    services = getattr(request.app.state, "services", None)
    if services is None:
        raise not_ready()
    assert isinstance(services, Services)
    return services


Context = Annotated[Services, Depends(services_of)]


class Authentication:
    """Authenticate a request by its bearer token, and check that the token's scope is enough."""

    def __init__(self, needed: Scope) -> None:
        self.needed = needed

    def __call__(
        self, request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
    ) -> Caller:
        """FastAPI dependency: the caller, as authenticated before the body was read."""
        caller = getattr(request.state, "caller", None)
        return caller if isinstance(caller, Caller) else self.authorise(request)

    def authorise(self, request: Request) -> Caller:
        """Authenticate the caller and check the scope. Raises Problem: unauthenticated, or forbidden."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token.strip():
            raise Problem(Code.UNAUTHENTICATED, "the request has no bearer token; send Authorization: Bearer cw_…")
        caller = services_of(request).tokens.caller_of(token.strip())
        if caller is None:
            raise Problem(Code.UNAUTHENTICATED, "the token is unknown, or it was revoked")
        if caller.scope < self.needed:
            label = self.needed.label
            raise Problem(
                Code.FORBIDDEN, f"this needs a token of scope {label}; yours is of scope {caller.scope.label}"
            )
        request.state.caller = caller
        return caller


Reader = Annotated[Caller, Depends(Authentication(Scope.READ))]
Operator = Annotated[Caller, Depends(Authentication(Scope.OPERATE))]
Admin = Annotated[Caller, Depends(Authentication(Scope.ADMIN))]

RunId = Annotated[str, Path(pattern=NAME_PATTERN, description="id of a run")]
WorkloadName = Annotated[str, Path(pattern=NAME_PATTERN, description="name of a workload")]
ShortId = Annotated[str, Path(pattern=SHORT_ID_PATTERN)]


def find_run(services: Services, run_id: str) -> RunRow:
    """Row of a run. Raises Problem(not_found)."""
    with services.database.snapshot() as session:
        return require_run(session, run_id)
