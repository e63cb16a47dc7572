"""/runs: plan, submit, list, show and stop runs."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from cliffwatch.api.context import API_PREFIX, Context, Operator, Reader, RunId, Services, find_run
from cliffwatch.api.pages import Limit, Page, PageToken, decode_page, next_token
from cliffwatch.api.problems import responses
from cliffwatch.api.route import ApiRoute
from cliffwatch.api.run_resource import Run, RunSummary, run_resource, run_summary
from cliffwatch.errors import Code
from cliffwatch.runs.faults import NAME_PATTERN
from cliffwatch.runs.specification import Strict, Target, Workload
from cliffwatch.runs.states import RunState, VerdictName
from cliffwatch.runs.submission import RunRequest
from cliffwatch.store.models import RunRow
from cliffwatch.store.queries import runs_page

router = APIRouter(prefix=API_PREFIX, route_class=ApiRoute, tags=["runs"])
_SORT, _KEY = "runs:created_at,id:descending", (float, str)
_REFUSALS = (
    Code.NOT_FOUND,
    Code.WORKLOAD_INVALID,
    Code.TARGET_MISSING,
    Code.COMPONENT_MISSING,
)


class PlannedWriteBody(BaseModel):
    """A file or a device that the run would write to."""

    path: str
    size_bytes: int


class ObjectionBody(BaseModel):
    """A reason for which the safety gate would refuse the run."""

    code: str
    message: str


class PlanBody(BaseModel):
    """What a run would do. `written_bytes` is null where nothing bounds the rate.

    `confirmation` is the sentence to give as `target.confirmation`; null where none is needed.
    """

    run_id: str
    target: Target
    path: str
    writes: list[PlannedWriteBody]
    command: list[str]
    written_bytes: int | None
    direct: bool
    notes: list[str]
    objections: list[ObjectionBody]
    confirmation: str | None
    workload: Workload


class StopRequest(Strict):
    """`force`: kill the worker and its engine instead of letting them finish their window."""

    force: bool = False


@router.post("/runs/plan", responses=responses(*_REFUSALS))
def plan_run(
    request: RunRequest,
    services: Context,
    caller: Operator,
    run_id: Annotated[str | None, Query(pattern=NAME_PATTERN, description="the id that the run would get")] = None,
) -> PlanBody:
    """Say exactly what a run would write where, and what stands in its way. Writes nothing."""
    plan = services.runs.plan(request, run_id)
    return PlanBody(
        run_id=plan.run_id,
        target=request.target,
        path=str(plan.examination.path),
        writes=[PlannedWriteBody(path=str(write.path), size_bytes=write.size_bytes) for write in plan.plan.writes],
        command=list(plan.plan.command),
        written_bytes=plan.plan.written_bytes,
        direct=plan.plan.direct,
        notes=list(plan.notes),
        objections=[ObjectionBody(code=item.code, message=item.message) for item in plan.objections],
        confirmation=plan.confirmation,
        workload=plan.workload,
    )


@router.post("/runs", status_code=201, responses=responses(*_REFUSALS, Code.TARGET_UNSAFE, Code.SPACE_INSUFFICIENT))
def create_run(request: RunRequest, response: Response, services: Context, caller: Operator) -> Run:
    """Queue a run under an id of the service's choice. Nothing is left behind when it is refused."""
    run_id, _ = services.runs.submit(request, caller.name)
    return _created(services, run_id, response)


@router.put(
    "/runs/{run_id}",
    status_code=201,
    responses={
        **responses(*_REFUSALS, Code.CONFLICT, Code.TARGET_UNSAFE, Code.SPACE_INSUFFICIENT),
        200: {"model": Run, "description": "The same request made this run before"},
    },
)
def put_run(run_id: RunId, request: RunRequest, response: Response, services: Context, caller: Operator) -> Run:
    """Queue a run under an id of the caller's choice. Repeating the same request makes no second run."""
    _, is_new = services.runs.submit(request, caller.name, run_id)
    if not is_new:
        response.status_code = 200
    return _created(services, run_id, response)


@router.get("/runs", responses=responses(Code.PAGE_TOKEN_INVALID))
def list_runs(
    services: Context,
    caller: Reader,
    state: RunState | None = None,
    workload: Annotated[str | None, Query(pattern=NAME_PATTERN, description="name of a workload")] = None,
    verdict: VerdictName | None = None,
    limit: Limit = 50,
    page: PageToken = None,
) -> Page[RunSummary]:
    """Runs, newest first."""
    rows = listed_rows(services, state, workload, verdict, limit, page)
    now = services.clock.wall()
    return Page(items=[run_summary(row, now) for row in rows.items], next_page=rows.next_page)


@dataclass(frozen=True, slots=True)
class ListedRows:
    """A page of the index, and the token of the next page."""

    items: list[RunRow]
    next_page: str | None


def listed_rows(
    services: Services,
    state: RunState | None,
    workload: str | None,
    verdict: VerdictName | None,
    limit: int,
    page: str | None,
) -> ListedRows:
    """Raises Problem(page_token_invalid)."""
    after = decode_page(page, _SORT, _KEY)
    with services.database.snapshot() as session:
        rows = runs_page(
            session, limit + 1, after, state.value if state else None, workload, verdict.value if verdict else None
        )
    return ListedRows(rows[:limit], next_token(rows, limit, _SORT, lambda row: (row.created_at, row.id)))


@router.get("/runs/{run_id}", responses=responses(Code.NOT_FOUND))
def show_run(run_id: RunId, services: Context, caller: Reader) -> Run:
    """A run, with its newest window."""
    return run_resource(find_run(services, run_id), services.clock.wall())


@router.post("/runs/{run_id}/stop", status_code=202, responses=responses(Code.NOT_FOUND, Code.WRONG_STATE))
def stop_run(run_id: RunId, services: Context, caller: Operator, request: StopRequest | None = None) -> Run:
    """Stop a run: one that waits ends at once, another finishes its window and makes its report."""
    row = services.runs.stop(run_id, force=request is not None and request.force)
    return run_resource(row, services.clock.wall())


def _created(services: Context, run_id: str, response: Response) -> Run:
    response.headers["Location"] = f"{API_PREFIX}/runs/{run_id}"
    return run_resource(find_run(services, run_id), services.clock.wall())
