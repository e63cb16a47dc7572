"""Route class of the API: authenticate before the body is read, and bound the body before it is parsed.

FastAPI's own route reads and checks a body before it resolves the dependencies that authenticate the caller: a client
with a token of scope `read`, or without a token, could make it parse a body of 1 MiB.
"""

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.plain_values import read_json
from cliffwatch.http.context import Authentication

_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


class ApiRoute(APIRoute):
    """Route that authorises the caller first, then parses a JSON body with limits, and then calls the handler."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        needed = _authentication_of(self.dependant)
        # Without a body field no body is read, or the handler streams it and limits its size.
        takes_body = self.body_field is not None

        async def guarded(request: Request) -> Response:
            if needed is not None:
                await run_in_threadpool(needed.authorise, request)
            if takes_body and request.method in _WITH_BODY and _is_json(request):
                body = await request.body()
                try:
                    if body:
                        # Starlette caches a parsed body here, and FastAPI uses the cached value.
                        request._json = await run_in_threadpool(read_json, body)
                except json.JSONDecodeError:
                    pass  # FastAPI reports the position.
                except ValueError as error:
                    fault = FieldFault("body", str(error))
                    raise Problem(Code.BAD_REQUEST, "the request is not valid", [fault]) from error
            return await handle(request)

        return guarded


def _authentication_of(dependant: Dependant) -> Authentication | None:
    found = (inner.call for inner in dependant.dependencies)
    return next((call for call in found if isinstance(call, Authentication)), None)


def _is_json(request: Request) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")
