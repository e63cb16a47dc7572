"""/healthz and /readyz: whether the process answers, and whether it can do its work. No token is needed."""

from fastapi import APIRouter
from pydantic import BaseModel

from cliffwatch.base.errors import Code, Problem
from cliffwatch.http.context import Context
from cliffwatch.http.problems import responses

router = APIRouter(tags=["health"])


class HealthBody(BaseModel):
    """`ok`, always: otherwise the answer is a problem."""

    status: str = "ok"


@router.get("/healthz")
def healthz() -> HealthBody:
    """The process is there and answers."""
    return HealthBody()


@router.get("/readyz", responses=responses(Code.NOT_READY))
def readyz(services: Context) -> HealthBody:
    """The database can be written and is up to date, and the scheduler runs."""
    fault = services.database_monitor.fault()
    if fault is not None:
        raise Problem(Code.NOT_READY, fault)
    if not services.scheduler.is_running:
        raise Problem(Code.NOT_READY, "the scheduler does not run, or another service has its lock")
    return HealthBody()
