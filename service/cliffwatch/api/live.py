"""/runs/{run_id}/live: a run as server-sent events, until it is over."""

from typing import Annotated

from fastapi import APIRouter, Header
from sse_starlette import EventSourceResponse

from cliffwatch.base.errors import Code
from cliffwatch.http.context import API_PREFIX, Context, Reader, RunId
from cliffwatch.http.live_stream import live_stream
from cliffwatch.http.problems import responses
from cliffwatch.http.route import ApiRoute

router = APIRouter(prefix=API_PREFIX, route_class=ApiRoute, tags=["runs"])


@router.get(
    "/runs/{run_id}/live",
    responses={
        **responses(Code.NOT_FOUND, Code.TOO_MANY_STREAMS),
        200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "server-sent events"},
    },
    response_class=EventSourceResponse,
)
async def follow_run(
    run_id: RunId,
    services: Context,
    caller: Reader,
    last_event_id: Annotated[str | None, Header(max_length=64)] = None,
) -> EventSourceResponse:
    """Past and new events and windows of a run, and its state, as a stream until the run is over."""
    return await live_stream(services, caller, run_id, last_event_id)
