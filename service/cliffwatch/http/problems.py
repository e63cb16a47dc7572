"""Every error as application/problem+json (RFC 9457): one shape, one stable `code`, no traceback."""

import json
import logging
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from cliffwatch.base import durable
from cliffwatch.base.errors import KINDS, Code, FieldFault, Problem
from cliffwatch.base.faults import FAULTS_LIMIT, field_of, message_of, with_rest
from cliffwatch.store.database import DATABASE_ERRORS, is_damage, why_unusable

_LOG = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"
#: Possible first items of the location (`loc`) in a FastAPI error; the name of the field follows.
_PLACES = frozenset({"body", "query", "path", "header"})


#: Pause before a client should retry when the database or the service was busy.
RETRY_AFTER_SECONDS = 5


#: Temporary problems: a retry may succeed.
_PASSING = frozenset(
    {
        Code.DATABASE_UNAVAILABLE,
        Code.JOURNAL_UNWRITABLE,
        Code.NOT_READY,
        Code.TOO_MANY_STREAMS,
    }
)
#: Longer than any message of the service itself.
_TEXT_LIMIT = 2000


class FaultBody(BaseModel):
    """One fault in the input."""

    field: str
    message: str


class ProblemBody(BaseModel):
    """An error. `code` is stable and explained in docs/errors.md."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: Code
    errors: list[FaultBody]


class ProblemResponse(JSONResponse):
    """Response that reports a problem with the request for the path `instance`."""

    media_type = MEDIA_TYPE

    def __init__(self, problem: Problem, instance: str, headers: dict[str, str] | None = None) -> None:
        kind = problem.kind
        body = ProblemBody(
            type=f"urn:cliffwatch:problem:{problem.code}",
            title=kind.title,
            status=kind.status,
            detail=shortened(problem.detail),
            instance=instance,
            code=problem.code,
            errors=[
                FaultBody(field=shortened(fault.field), message=shortened(fault.message)) for fault in problem.faults
            ],
        )
        given = dict(headers or {})
        if kind.status == KINDS[Code.UNAUTHENTICATED].status:
            given["WWW-Authenticate"] = "Bearer"
        if problem.code in _PASSING:
            given["Retry-After"] = str(RETRY_AFTER_SECONDS)
        super().__init__(jsonable_encoder(body), status_code=kind.status, headers=given)


def shortened(text: str) -> str:
    """Truncate and sanitise a text that may hold client input, so that it can be sent back."""
    half = _TEXT_LIMIT // 2
    kept = text if len(text) <= _TEXT_LIMIT else f"{text[:half]} … {text[-half:]}"
    return kept.encode("utf-8", "replace").decode()


def responses(*codes: Code) -> dict[int | str, dict[str, Any]]:
    """OpenAPI declaration of the problems of one route, in addition to those of every route."""
    by_status: dict[int, list[Code]] = {}
    for code in codes:
        by_status.setdefault(KINDS[code].status, []).append(code)
    schema = {"schema": {"$ref": "#/components/schemas/ProblemBody"}}
    return {
        status: {"description": _describe(members), "content": {MEDIA_TYPE: schema}}
        for status, members in sorted(by_status.items())
    }


def declare(app: FastAPI, api_prefix: str, everywhere: Callable[[str], Sequence[Code]]) -> None:
    """Add to the application's OpenAPI document the schema of problems, and body_too_large to operations with a body.

    `everywhere` returns the problem codes that all operations of a path may answer with: FastAPI omits these codes from
    an operation that declares other codes of the same HTTP status.
    """
    make = app.openapi

    @cache
    def openapi() -> dict[str, Any]:
        document = make()
        template = "#/components/schemas/{model}"
        problem = ProblemBody.model_json_schema(ref_template=template)
        document["components"]["schemas"].update(problem.pop("$defs"), ProblemBody=problem)
        for path, methods in document["paths"].items():
            for operation in methods.values():
                _complete(operation["responses"], everywhere(path))
                if "requestBody" in operation:
                    too_large = responses(Code.BODY_TOO_LARGE)
                    operation["responses"].update({str(status): body for status, body in too_large.items()})
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # how FastAPI has it replaced

    @cache
    def content() -> bytes:
        return json.dumps(openapi(), ensure_ascii=False, separators=(",", ":")).encode()

    @app.get("/openapi.json", include_in_schema=False)
    @app.get(f"{api_prefix}/openapi.json", include_in_schema=False)
    async def openapi_json() -> Response:
        """The API's OpenAPI document, serialised once: it needs no token, and may be requested again and again."""
        return Response(content(), media_type="application/json")


def _complete(declared: dict[str, Any], codes: Sequence[Code]) -> None:
    for code in codes:
        answer = declared[str(KINDS[code].status)]
        if f"`{code.value}`" not in answer["description"]:
            answer["description"] += f"; {_describe([code])}"


def _path(request: Request) -> str:
    """Whole path of a request, decoded. `request.url.path` would end at a # or ? that was percent-encoded."""
    return str(request.scope["path"])


def _describe(codes: Sequence[Code]) -> str:
    return "; ".join(f"`{code.value}`: {KINDS[code].title}" for code in codes)


def install(
    app: FastAPI, api_prefix: str, show: Callable[[Request, Problem], Response], routes: Sequence[Route]
) -> None:
    """Install handlers that answer every exception in the application with a problem.

    `show` makes the error page for a browser's request outside of `api_prefix` that finds nothing or fails. `routes`
    are all routes of the application, for the header Allow: each route of a path knows its own methods only.
    """

    def is_page(request: Request) -> bool:
        return not _path(request).startswith(f"{api_prefix}/") and "text/html" in request.headers.get("accept", "")

    def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        problem = _problem_of(_path(request), request.method, error)
        if problem.code is Code.NOT_FOUND and request.method == "GET" and is_page(request):
            return show(request, problem)
        headers = dict(error.headers or {})
        if problem.code is Code.METHOD_NOT_ALLOWED:
            headers["Allow"] = ", ".join(_methods_of(routes, request)) or headers.get("Allow", "GET")
        return ProblemResponse(problem, _path(request), headers)

    def on_anything(request: Request, error: Exception) -> Response:
        # The traceback follows in the log: Starlette raises the exception again after the answer.
        _LOG.error("%s %s failed: %r", request.method, _path(request), error)
        problem = Problem(Code.INTERNAL, "the service failed to handle the request; its log says more")
        return show(request, problem) if is_page(request) else ProblemResponse(problem, _path(request))

    app.add_exception_handler(Problem, _on_problem)
    for kind in DATABASE_ERRORS:
        app.add_exception_handler(kind, _on_database)
    app.add_exception_handler(OSError, _on_disk)
    app.add_exception_handler(RequestValidationError, _on_validation)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(Exception, on_anything)


def _methods_of(routes: Sequence[Route], request: Request) -> list[str]:
    """All methods that the path of a request supports, by any of its routes."""
    found = (route.methods or set() for route in routes if route.matches(request.scope)[0] is not Match.NONE)
    return sorted({method for methods in found for method in methods})


def _on_problem(request: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, Problem)
    if error.kind.status >= 500:
        _LOG.error("%s %s: %s", request.method, _path(request), error)
    return ProblemResponse(error, _path(request))


def database_problem(error: Exception) -> Problem:
    """The problem for the client when a database is locked, unreachable or cannot be written."""
    reason, is_lost = why_unusable(error), is_damage(error)
    remedy = "it is damaged: restart the service, which says what can be done" if is_lost else "try again"
    return Problem(Code.DATABASE_UNAVAILABLE, f"the database cannot be used at the moment ({reason:.200}); {remedy}")


def _on_database(request: Request, error: Exception) -> ProblemResponse:
    problem = database_problem(error)
    _LOG.error("%s %s: %s", request.method, _path(request), problem)
    return ProblemResponse(problem, _path(request))


def disk_problem(error: OSError) -> Problem | None:
    """The problem for the client when the journals' disk accepts no writes; None for any other failure."""
    if not durable.takes_nothing(error):
        return None
    remedy = "make room" if durable.is_full(error) else "see that it is well and mounted read-write"
    return Problem(
        Code.JOURNAL_UNWRITABLE, f"the journals' disk takes nothing: {error.strerror}; {remedy}, and try again"
    )


def _on_disk(request: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, OSError)
    problem = disk_problem(error)
    if problem is None:
        raise error
    return _on_problem(request, problem)


def _on_validation(request: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, RequestValidationError)
    return ProblemResponse(Problem(Code.BAD_REQUEST, "the request is not valid", request_faults(error)), _path(request))


def request_faults(error: RequestValidationError) -> list[FieldFault]:
    """Faults in a request, field by field: FastAPI's errors, worded as this service words faults."""
    found = error.errors()
    return with_rest([_fault(item) for item in found[:FAULTS_LIMIT]], len(found))


def _fault(item: dict[str, Any]) -> FieldFault:
    place = [str(part) for part in item["loc"]]
    if item["type"] == "json_invalid":
        return FieldFault("body", f"this is not JSON: {item['ctx']['error']}, at character {place[-1]}")
    if place == ["body"] and item["type"] in ("model_attributes_type", "dict_type"):
        return FieldFault("body", "this is no JSON object; send one, with the header Content-Type: application/json")
    if place[0] == "query":
        # Drop the index among several parameters of a name: the message has the value.
        place = place[:2]
    if place[0] in _PLACES and len(place) > 1:
        place = place[1:]
    return FieldFault(field_of(place), message_of(item))


def _problem_of(path: str, method: str, error: HTTPException) -> Problem:
    if error.status_code == KINDS[Code.NOT_FOUND].status:
        return Problem(Code.NOT_FOUND, f"there is no resource at {path}")
    if error.status_code == KINDS[Code.METHOD_NOT_ALLOWED].status:
        return Problem(Code.METHOD_NOT_ALLOWED, f"{path} does not support {method}")
    return Problem(Code.BAD_REQUEST, str(error.detail))
