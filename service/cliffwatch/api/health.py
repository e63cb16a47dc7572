"""/healthz and /readyz: whether the process answers, and whether it can do its work. No token is needed."""

from fastapi import APIRouter
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError

from cliffwatch.api.context import Context
from cliffwatch.api.problems import responses
from cliffwatch.errors import Code, Problem
from cliffwatch.store.database import is_current

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """`ok`, always: otherwise the answer is a problem."""

    status: str = "ok"


@router.get("/healthz")
def healthz() -> Health:
    """The process is there and answers."""
    return Health()


@router.get("/readyz", responses=responses(Code.NOT_READY))
def readyz(services: Context) -> Health:
    """The database answers and is up to date, and the scheduler runs."""
    try:
        with services.database.snapshot() as session:
            current = is_current(session)
    except SQLAlchemyError as error:
        raise Problem(Code.NOT_READY, f"the database does not answer: {type(error).__name__}") from error
    if not current:
        raise Problem(Code.NOT_READY, "the database is not of this version; a restart brings it up to date")
    if not services.scheduler.is_running:
        raise Problem(Code.NOT_READY, "the scheduler does not run, or another service has its lock")
    return Health()
