"""/workloads: documents by name and version."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Response
from pydantic import BaseModel

from cliffwatch.api.context import API_PREFIX, Context, Operator, Reader, WorkloadName
from cliffwatch.api.pages import Limit, Page, PageToken, decode_page, page_of
from cliffwatch.api.problems import responses
from cliffwatch.api.route import ApiRoute
from cliffwatch.api.times import Time
from cliffwatch.engines.registry import load_of
from cliffwatch.errors import Code, FieldFault, Problem
from cliffwatch.runs.specification import Workload, parse_workload, workload_from
from cliffwatch.runs.submission import check_text
from cliffwatch.store.models import WorkloadRow
from cliffwatch.store.queries import workloads_page
from cliffwatch.store.workloads import put_workload, require_workload

router = APIRouter(prefix=API_PREFIX, route_class=ApiRoute, tags=["workloads"])
_SORT, _KEY = "workloads:name", (str,)
_VERSION_LIMIT = 2**31 - 1

Document = Annotated[dict[str, Any], Body(description="a workload document")]


class WorkloadBody(BaseModel):
    """A version of a workload."""

    name: str
    version: int
    engine: str
    description: str
    document: dict[str, Any]
    created_at: Time


@router.get("/workloads", responses=responses(Code.PAGE_TOKEN_INVALID))
def list_workloads(services: Context, caller: Reader, limit: Limit = 50, page: PageToken = None) -> Page[WorkloadBody]:
    """The newest version of each workload, by name."""
    after = decode_page(page, _SORT, _KEY)
    with services.database.snapshot() as session:
        rows = workloads_page(session, limit + 1, after)
    return page_of(rows, limit, _SORT, lambda row: [row.name], _show)


@router.get("/workloads/{name}", responses=responses(Code.NOT_FOUND))
def show_workload(
    name: WorkloadName,
    services: Context,
    caller: Reader,
    version: Annotated[int | None, Query(ge=1, le=_VERSION_LIMIT, description="the newest unless given")] = None,
) -> WorkloadBody:
    """A workload."""
    with services.database.snapshot() as session:
        return _show(require_workload(session, name, version))


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
    return _show(row)


@router.post("/workloads/validate", responses=responses(Code.WORKLOAD_INVALID))
def validate_workload(
    document: Annotated[dict[str, Any], Body(description='a workload document, or {"yaml": "its text"}')],
    caller: Reader,
) -> Workload:
    """Check a workload and answer it with every default filled in. Stores nothing."""
    if set(document) == {"yaml"} and isinstance(document["yaml"], str):
        workload = parse_workload(document["yaml"])
        load_of(workload)
        return workload
    return _checked(document)


def _checked(document: dict[str, Any]) -> Workload:
    try:
        check_text(document)
    except ValueError as error:
        raise Problem(Code.WORKLOAD_INVALID, f"the workload is not valid: {error}") from error
    workload = workload_from(document)
    load_of(workload)
    return workload


def _show(row: WorkloadRow) -> WorkloadBody:
    """A row that cannot be read is listed too, without a document; a run of it is refused."""
    document: dict[str, Any] = row.document if isinstance(row.document, dict) else {}
    return WorkloadBody(
        name=row.name,
        version=row.version,
        engine=str(document.get("engine", "")),
        description=str(document.get("description", "")),
        document=document,
        created_at=row.created_at,
    )
