"""/schedules: create, list, change and remove schedules."""

from fastapi import APIRouter, Response

from cliffwatch.app.schedules import row_of
from cliffwatch.base.errors import Code
from cliffwatch.http.context import API_PREFIX, Context, Operator, Reader, ShortId
from cliffwatch.http.paging import Limit, Page, PageToken, decode_page, page_of
from cliffwatch.http.problems import responses
from cliffwatch.http.route import ApiRoute
from cliffwatch.http.schedule_resource import (
    Firing,
    ScheduleBody,
    ScheduleDetail,
    firing_body,
    listed_schedules,
    schedule_detail,
)
from cliffwatch.model.schedule import ScheduleChange, ScheduleRequest
from cliffwatch.store.queries import firings_page

router = APIRouter(prefix=API_PREFIX, route_class=ApiRoute, tags=["schedules"])
_FIRINGS, _FIRINGS_KEY = "firings:due_at,id:descending", (float, int)
_REFUSALS = (Code.NOT_FOUND, Code.CONFLICT, Code.SCHEDULE_INVALID, Code.WORKLOAD_INVALID, Code.TARGET_MISSING)


@router.post("/schedules", status_code=201, responses=responses(*_REFUSALS))
def create_schedule(
    request: ScheduleRequest, response: Response, services: Context, caller: Operator
) -> ScheduleDetail:
    """Make a schedule. Its workload is looked up and checked now, and again each time it fires."""
    schedule_id = services.schedules.create(request, caller.name)
    response.headers["Location"] = f"{API_PREFIX}/schedules/{schedule_id}"
    return schedule_detail(services, schedule_id)


@router.get("/schedules", responses=responses(Code.PAGE_TOKEN_INVALID))
def list_schedules(services: Context, caller: Reader, limit: Limit = 50, page: PageToken = None) -> Page[ScheduleBody]:
    """Schedules, by name."""
    return listed_schedules(services, limit, page)


@router.get("/schedules/{schedule_id}", responses=responses(Code.NOT_FOUND))
def show_schedule(schedule_id: ShortId, services: Context, caller: Reader) -> ScheduleDetail:
    """A schedule, with its next fire times."""
    return schedule_detail(services, schedule_id)


@router.patch("/schedules/{schedule_id}", responses=responses(*_REFUSALS))
def change_schedule(
    schedule_id: ShortId, change: ScheduleChange, services: Context, caller: Operator
) -> ScheduleDetail:
    """Enable, disable or change a schedule. Runs that it queued go on."""
    services.schedules.change(schedule_id, change)
    return schedule_detail(services, schedule_id)


@router.delete("/schedules/{schedule_id}", status_code=204, responses=responses(Code.NOT_FOUND))
def delete_schedule(schedule_id: ShortId, services: Context, caller: Operator) -> None:
    """Remove a schedule and the record of its firings. Runs that it queued stay."""
    services.schedules.delete(schedule_id)


@router.get("/schedules/{schedule_id}/firings", responses=responses(Code.NOT_FOUND, Code.PAGE_TOKEN_INVALID))
def list_firings(
    schedule_id: ShortId, services: Context, caller: Reader, limit: Limit = 50, page: PageToken = None
) -> Page[Firing]:
    """Outcomes of a schedule's fire times, newest first."""
    after = decode_page(page, _FIRINGS, _FIRINGS_KEY)
    with services.database.snapshot() as session:
        row_of(session, schedule_id)
        rows = firings_page(session, schedule_id, limit + 1, after)
        return page_of(rows, limit, _FIRINGS, lambda row: (row.due_at, row.id), lambda row: firing_body(session, row))
