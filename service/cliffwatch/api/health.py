"""/healthz and /readyz: liveness and readiness of the service. No token is needed.

Neither waits for the thread pool that serves other requests: otherwise a monitor would mistake a busy service for a
dead one.
"""

import os
from pathlib import Path

import anyio
import anyio.to_thread
from fastapi import APIRouter, Request
from pydantic import BaseModel

from cliffwatch.base.errors import Code, Problem
from cliffwatch.http.context import Services, services_of
from cliffwatch.http.problems import responses

router = APIRouter(tags=["health"])
#: A longer round of the reconciler makes the service not ready. It takes milliseconds plus waits for the database.
LONGEST_ROUND_SECONDS = 60.0
#: With less free space the disk counts as full: an event and a window are written at a time, each in a new block.
_LEAST_ROOM_BYTES = 64 * 1024
#: Maximum number of threads that query the database for readiness requests.
_ASKING_LIMIT = 2


class HealthBody(BaseModel):
    """`status` is always `ok`: a fault is answered with a problem instead."""

    status: str = "ok"


@router.get("/healthz")
async def healthz() -> HealthBody:
    """Liveness: the process runs and answers."""
    return HealthBody()


@router.get("/readyz", responses=responses(Code.NOT_READY))
async def readyz(request: Request) -> HealthBody:
    """Readiness: the database can be written and is up to date, journals can be written, runs are reconciled, and the
    scheduler runs."""
    services = services_of(request)
    state = request.app.state
    if not hasattr(state, "readiness_threads"):
        # Created here and not at import: a limiter belongs to the event loop that waits for it.
        state.readiness_threads = anyio.CapacityLimiter(_ASKING_LIMIT)
    await anyio.to_thread.run_sync(_require_ready, services, limiter=state.readiness_threads)
    return HealthBody()


def _require_ready(services: Services) -> None:
    """Check that the service is ready. Raises Problem(not_ready) with the first reason against it."""
    fault = services.database_monitor.fault()
    if fault is not None:
        raise Problem(Code.NOT_READY, fault)
    runs = services.settings.runs_directory
    if not os.access(runs, os.W_OK | os.X_OK):
        raise Problem(Code.NOT_READY, f"{runs} cannot be written; see that it is there and mounted read-write")
    if _is_full(runs):
        raise Problem(Code.NOT_READY, f"the disk below {runs} is full, and journals are written there; make room")
    if not services.scheduler.is_running:
        raise Problem(Code.NOT_READY, "the scheduler does not run, or another service has its lock")
    if (busy_seconds := services.reconciling_seconds()) > LONGEST_ROUND_SECONDS:
        raise Problem(
            Code.NOT_READY,
            f"for {busy_seconds:.0f} s no run has been looked after: what the service reads or starts does not answer; "
            "see the disk of the journals, then restart the service",
        )


def _is_full(directory: Path) -> bool:
    """Whether the file system of `directory` has no blocks or no inodes left for another file."""
    room = os.statvfs(directory)
    # A file system that makes inodes as they are needed counts none.
    return room.f_bavail * room.f_frsize < _LEAST_ROOM_BYTES or (room.f_files > 0 and room.f_favail == 0)
