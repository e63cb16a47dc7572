"""The API's operations as a page: method, path and what each does, from the OpenAPI document."""

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from cliffwatch.web.page import PageRoute, show
from cliffwatch.web.session import AnyVisitor

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation; `parameters` are the names of its query, `does` is its description's first paragraph."""

    method: str
    path: str
    does: str
    parameters: tuple[str, ...]


@router.get("/api")
def show_api(request: Request, visitor: AnyVisitor) -> Response:
    """All operations of the API by path, with the query of each and what it does."""
    operations = _operations(request.app.openapi())
    return show(request, "api.html", visitor, base=str(request.base_url).rstrip("/"), operations=operations)


def _operations(document: dict[str, dict[str, dict[str, dict[str, object]]]]) -> list[Operation]:
    return [
        Operation(method.upper(), path, _first(str(each.get("description", ""))), _query(each.get("parameters", ())))
        for path, methods in sorted(document["paths"].items())
        for method, each in methods.items()
    ]


def _first(description: str) -> str:
    return " ".join(description.partition("\n\n")[0].split())


def _query(parameters: object) -> tuple[str, ...]:
    assert isinstance(parameters, list | tuple), "as OpenAPI defines it"
    return tuple(str(each["name"]) for each in parameters if each["in"] == "query")
