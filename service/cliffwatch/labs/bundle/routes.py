"""/runs/import: import a bundled run of another service."""

from pathlib import Path
from typing import Annotated, Any, BinaryIO

from fastapi import APIRouter, Depends, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from cliffwatch.app.tokens import Caller
from cliffwatch.base.errors import Code, Problem
from cliffwatch.http.context import API_PREFIX, Context, Operator, Services, find_run, not_ready
from cliffwatch.http.problems import responses
from cliffwatch.http.route import ApiRoute
from cliffwatch.http.run_resource import Run, run_resource
from cliffwatch.labs.bundle.imports import ImportService
from cliffwatch.labs.bundle.unpack import disk_problem, require_space

router = APIRouter(prefix=API_PREFIX, route_class=ApiRoute, tags=["runs"])
IMPORT_PATH = f"{API_PREFIX}/runs/import"
MEDIA_TYPE = "application/zstd"
UPLOAD_LIMIT_BYTES = 8 * 1024**3
#: Bytes that are received between two writes; a thread does each write, so it does not block other requests.
_PIECE_BYTES = 1024 * 1024
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "a file that `cliffwatch run bundle` wrote",
        "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    }
}


def imports_of(request: Request) -> ImportService:
    """Import service that the server put into the application. Raises Problem(not_ready)."""
    imports = getattr(request.app.state, "imports", None)
    if imports is None:
        raise not_ready()
    assert isinstance(imports, ImportService)
    return imports


Imports = Annotated[ImportService, Depends(imports_of)]


@router.post(
    "/runs/import",
    status_code=201,
    responses=responses(Code.BUNDLE_INVALID, Code.CONFLICT, Code.SPACE_INSUFFICIENT),
    openapi_extra=_BODY,
)
async def import_run(
    request: Request, response: Response, services: Context, imports: Imports, caller: Operator
) -> Run:
    """Make a finished run of another service one of this service, under the id that it has. All of it or nothing."""
    with imports.upload() as path:
        try:
            await _receive(request, path)
        except OSError as error:
            raise disk_problem(path.parent, error) from error
        async with imports.turns:
            run = await run_in_threadpool(_take, services, imports, caller, path)
    response.headers["Location"] = f"{API_PREFIX}/runs/{run.id}"
    return run


def _take(services: Services, imports: ImportService, caller: Caller, path: Path) -> Run:
    run_id = imports.take(path, caller.name)
    return run_resource(find_run(services, run_id), services.clock.wall())


async def _receive(request: Request, path: Path) -> None:
    """Write the request body to `path`. Raises Problem: body_too_large, space_insufficient before the disk is full."""
    pending = bytearray()
    received = 0
    with path.open("xb") as file:
        try:
            async for chunk in request.stream():
                received += len(chunk)
                if received > UPLOAD_LIMIT_BYTES:
                    raise Problem(Code.BODY_TOO_LARGE, f"the bundle is larger than {UPLOAD_LIMIT_BYTES} bytes")
                pending += chunk
                if len(pending) >= _PIECE_BYTES:
                    await run_in_threadpool(_write, file, path, bytes(pending))
                    pending.clear()
        except ClientDisconnect as error:
            raise Problem(Code.BAD_REQUEST, "the upload ended before the bundle did") from error
        await run_in_threadpool(_write, file, path, bytes(pending))


def _write(file: BinaryIO, path: Path, piece: bytes) -> None:
    require_space(path.parent, len(piece))
    file.write(piece)
