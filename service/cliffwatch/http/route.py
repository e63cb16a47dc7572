"""Route class of the API: authenticate before the body is read, and bound the body before it is parsed.

FastAPI reads and checks a body before it asks the dependencies who sent it, so that a token of scope `read`, or none,
could have a mebibyte checked.
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
    """A route that authorises first, and gives its handler a body of plain values."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        needed = _authentication_of(self.dependant)
        # Where a handler takes none, it is not read, or by the handler itself, which bounds what it streams.
        takes_body = self.body_field is not None

        async def guarded(request: Request) -> Response:
            if needed is not None:
                await run_in_threadpool(needed.authorise, request)
            if takes_body and request.method in _WITH_BODY and _is_json(request):
                body = await request.body()
                try:
                    if body:
                        # What Starlette keeps once it has parsed a body; FastAPI takes it from there.
                        request._json = await run_in_threadpool(read_json, body)
                except json.JSONDecodeError:
                    pass  # FastAPI says where.
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
