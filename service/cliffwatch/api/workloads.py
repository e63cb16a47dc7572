"""/workloads: documents by name and version."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Response

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.engines.registry import checked_workload
from cliffwatch.http.context import API_PREFIX, Context, Operator, Reader, WorkloadName
from cliffwatch.http.paging import Limit, Page, PageToken
from cliffwatch.http.problems import responses
from cliffwatch.http.route import ApiRoute
from cliffwatch.http.workload_resource import WorkloadBody, listed_workloads, workload_body
from cliffwatch.model.request import check_text
from cliffwatch.model.workload import Workload, workload_document
from cliffwatch.store.workloads import put_workload, require_workload

router = APIRouter(prefix=API_PREFIX, route_class=ApiRoute, tags=["workloads"])
_VERSION_LIMIT = 2**31 - 1

Document = Annotated[dict[str, Any], Body(description="a workload document")]


@router.get("/workloads", responses=responses(Code.PAGE_TOKEN_INVALID))
def list_workloads(services: Context, caller: Reader, limit: Limit = 50, page: PageToken = None) -> Page[WorkloadBody]:
    """The newest version of each workload, by name."""
    return listed_workloads(services, limit, page)


@router.get("/workloads/{name}", responses=responses(Code.NOT_FOUND))
def show_workload(
    name: WorkloadName,
    services: Context,
    caller: Reader,
    version: Annotated[int | None, Query(ge=1, le=_VERSION_LIMIT, description="the newest unless given")] = None,
) -> WorkloadBody:
    """A workload."""
    with services.database.snapshot() as session:
        return workload_body(require_workload(session, name, version))


@router.put(
    "/workloads/{name}",
    status_code=201,
    responses={
        **responses(Code.WORKLOAD_INVALID),
        200: {"model": WorkloadBody, "description": "The newest version is this document already"},
    },
)
def put_workload_version(
    name: WorkloadName, document: Document, response: Response, services: Context, caller: Operator
) -> WorkloadBody:
    """Store a workload. A changed document becomes the next version; versions never change."""
    workload = _checked(document)
    if workload.name != name:
        fault = FieldFault("name", f"the document says {workload.name!r}, the path {name!r}; make them the same")
        raise Problem(Code.WORKLOAD_INVALID, "the workload's name is not that of the path", [fault])
    with services.database.session() as session:
        row, is_new = put_workload(session, workload, services.clock.wall())
    if not is_new:
        response.status_code = 200
    response.headers["Location"] = f"{API_PREFIX}/workloads/{name}?version={row.version}"
    return workload_body(row)


@router.post("/workloads/validate", responses=responses(Code.WORKLOAD_INVALID))
def validate_workload(
    document: Annotated[dict[str, Any], Body(description='a workload document, or {"yaml": "its text"}')],
    caller: Reader,
) -> Workload:
    """Check a workload and answer it with every default filled in. Stores nothing."""
    if set(document) == {"yaml"} and isinstance(document["yaml"], str):
        return checked_workload(workload_document(document["yaml"]))
    return _checked(document)


def _checked(document: dict[str, Any]) -> Workload:
    try:
        check_text(document)
    except ValueError as error:
        raise Problem(Code.WORKLOAD_INVALID, f"the workload is not valid: {error}") from error
    return checked_workload(document)
