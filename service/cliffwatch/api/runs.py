"""/runs: plan, submit, list, show and stop runs."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from cliffwatch.app.comparison import ComparableRuns, Comparison, comparable_runs, comparison_of
from cliffwatch.app.differences import Differences, differences_of
from cliffwatch.app.marks import mark_run
from cliffwatch.app.repeat import request_of
from cliffwatch.app.standing import standing_of
from cliffwatch.base.errors import Code
from cliffwatch.base.faults import NAME_PATTERN
from cliffwatch.http.context import API_PREFIX, Context, Operator, Reader, RunId, find_run
from cliffwatch.http.mark_request import MarkRequest
from cliffwatch.http.paging import Limit, Page, PageToken
from cliffwatch.http.plan_resource import PlanBody, plan_body
from cliffwatch.http.problems import responses
from cliffwatch.http.route import ApiRoute
from cliffwatch.http.run_resource import Run, RunSummary, run_resource, run_summary
from cliffwatch.http.run_rows import RunFilter, listed_rows
from cliffwatch.model.annotations import AnnotationsChange, LabelChoice, parse_choice
from cliffwatch.model.document import Strict
from cliffwatch.model.request import RunRequest
from cliffwatch.model.run_state import RunState, VerdictName
from cliffwatch.store.queries import has_known_words

router = APIRouter(prefix=API_PREFIX, route_class=ApiRoute, tags=["runs"])
_REFUSALS = (
    Code.NOT_FOUND,
    Code.WORKLOAD_INVALID,
    Code.TARGET_MISSING,
    Code.COMPONENT_MISSING,
)
_CHOICE = "`name=value`, or `name` for any value of it"


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
    return plan_body(request, plan)


@router.post("/runs/comparable", responses=responses(*_REFUSALS))
def show_comparable_runs(
    request: RunRequest,
    services: Context,
    caller: Reader,
    label: Annotated[LabelChoice, Query(description=_CHOICE)],
) -> ComparableRuns:
    """Runs with a label that a run of this request would be compared with. Starts nothing."""
    workload, _, _ = services.runs.resolve(request)
    return comparable_runs(services.database, label, workload, len(request.targets))


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
    label: Annotated[tuple[LabelChoice, ...], Query(description=f"{_CHOICE}; of several, runs that have all")] = (),
    limit: Limit = 50,
    page: PageToken = None,
) -> Page[RunSummary]:
    """Runs, newest first."""
    rows = listed_rows(services, RunFilter(state, workload, verdict, dict(map(parse_choice, label))), limit, page)
    now = services.clock.wall()
    return Page(items=[run_summary(row, now) for row in rows.items if has_known_words(row)], next_page=rows.next_page)


@router.get("/runs/{run_id}", responses=responses(Code.NOT_FOUND))
def show_run(run_id: RunId, services: Context, caller: Reader) -> Run:
    """A run, with its newest window."""
    return _shown(services, run_id)


@router.get("/runs/{run_id}/request", responses=responses(Code.NOT_FOUND, Code.JOURNAL_UNREADABLE))
def show_request(run_id: RunId, services: Context, caller: Reader) -> RunRequest:
    """The request that repeats a run: its workload as it was, its targets and labels. Erasing a drive must be confirmed
    again."""
    return request_of(find_run(services, run_id))


@router.get("/runs/{run_id}/differences", responses=responses(Code.NOT_FOUND))
def show_differences(
    run_id: RunId,
    services: Context,
    caller: Reader,
    other: Annotated[str, Query(pattern=NAME_PATTERN, description="id of the run to compare it with")],
) -> Differences:
    """Differences between two runs: all of their results, and the values of workload, targets and environment that are
    not the same. `second` is the value of the other run; null is a value that a run does not have."""
    return differences_of(find_run(services, run_id), find_run(services, other))


@router.get("/runs/{run_id}/comparison", responses=responses(Code.NOT_FOUND, Code.WRONG_STATE, Code.JOURNAL_UNREADABLE))
def show_comparison(
    run_id: RunId,
    services: Context,
    caller: Reader,
    label: Annotated[LabelChoice, Query(description=_CHOICE)],
) -> Comparison:
    """A finished run beside earlier runs of the same load that have a label: each figure by theirs, with a 95 %
    interval, and whether it is worse."""
    return comparison_of(services.database, find_run(services, run_id), label)


@router.patch("/runs/{run_id}", responses=responses(Code.NOT_FOUND, Code.JOURNAL_UNREADABLE))
def annotate_run(run_id: RunId, change: AnnotationsChange, services: Context, caller: Operator) -> Run:
    """Change a run's labels and its note, and pin it or not. Omitted fields stay; a label set to null is removed."""
    services.library.annotate(run_id, change, caller.name)
    return _shown(services, run_id)


@router.delete("/runs/{run_id}", status_code=204, responses=responses(Code.NOT_FOUND, Code.WRONG_STATE, Code.CONFLICT))
def delete_run(run_id: RunId, services: Context, caller: Operator) -> None:
    """Delete a finished run with its journal, reports and telemetry. A pinned run is not deleted."""
    services.library.delete(run_id)


@router.post("/runs/{run_id}/stop", status_code=202, responses=responses(Code.NOT_FOUND, Code.WRONG_STATE))
def stop_run(run_id: RunId, services: Context, caller: Operator, request: StopRequest | None = None) -> Run:
    """Stop a run: a queued run ends at once, any other finishes its window and makes its report."""
    row = services.runs.stop(run_id, force=request is not None and request.force)
    return run_resource(row, services.clock.wall())


@router.post(
    "/runs/{run_id}/marks",
    status_code=201,
    responses=responses(Code.NOT_FOUND, Code.WRONG_STATE, Code.CONFLICT, Code.JOURNAL_UNREADABLE),
)
def mark(run_id: RunId, request: MarkRequest, services: Context, caller: Operator) -> MarkRequest:
    """Mark a span in which the run was disturbed on purpose: its report draws it and leaves it out of the judgement."""
    mark_run(find_run(services, run_id), request.mark, caller.name, services.clock.wall())
    return request


def _created(services: Context, run_id: str, response: Response) -> Run:
    response.headers["Location"] = f"{API_PREFIX}/runs/{run_id}"
    return _shown(services, run_id)


def _shown(services: Context, run_id: str) -> Run:
    row = find_run(services, run_id)
    standing = standing_of(services.database, row)
    return run_resource(row, services.clock.wall(), services.runs.waits_for(row), standing)
