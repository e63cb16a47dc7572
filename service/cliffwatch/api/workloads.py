"""/workloads: store, list, show and validate workloads, by name and version."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Response

from cliffwatch.app.workloads import check_document, check_yaml
from cliffwatch.base.errors import Code
from cliffwatch.http.context import API_PREFIX, Context, Operator, Reader, WorkloadName
from cliffwatch.http.paging import Limit, Page, PageToken
from cliffwatch.http.problems import responses
from cliffwatch.http.route import ApiRoute
from cliffwatch.http.workload_resource import WorkloadBody, listed_workloads, workload_body
from cliffwatch.model.workload import Workload

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
    return workload_body(services.workloads.find(name, version))


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
    row, is_new = services.workloads.put(name, document)
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
        return check_yaml(document["yaml"])
    return check_document(document)
