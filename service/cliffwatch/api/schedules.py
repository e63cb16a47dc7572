"""/schedules: which run is queued when."""

import secrets
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from cliffwatch.api.context import API_PREFIX, Context, Operator, Reader, ShortId
from cliffwatch.api.pages import Limit, Page, PageToken, decode_page, page_of
from cliffwatch.api.problems import responses
from cliffwatch.api.route import ApiRoute
from cliffwatch.api.times import Time
from cliffwatch.errors import Code, FieldFault, Problem
from cliffwatch.runs.scheduler import MISSED
from cliffwatch.runs.specification import DurationOverrides, Strict, Target
from cliffwatch.runs.stored_schedules import read_request, read_trigger, reason_of
from cliffwatch.runs.submission import RunRequest, WorkloadChoice
from cliffwatch.runs.triggers import (
    CronSpecification,
    DateSpecification,
    IntervalSpecification,
    anchored,
    fire_times,
    parse_trigger,
)
from cliffwatch.store.database import take_turns
from cliffwatch.store.models import FiringRow, ScheduleRow
from cliffwatch.store.queries import firings_page, schedules_page

Value = TypeVar("Value")
router = APIRouter(prefix=API_PREFIX, route_class=ApiRoute, tags=["schedules"])
_SORT, _KEY = "schedules:name", (str,)
_FIRINGS, _FIRINGS_KEY = "firings:due_at,id:descending", (float, int)
_REFUSALS = (Code.NOT_FOUND, Code.CONFLICT, Code.SCHEDULE_INVALID, Code.WORKLOAD_INVALID)
_NEXT_SHOWN = 5

ScheduleName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")]
Trigger = Annotated[dict[str, Any], Field(description="`kind` is cron (`expression`, `time_zone`), interval or date")]
AnyTrigger = Annotated[CronSpecification | IntervalSpecification | DateSpecification, Field(discriminator="kind")]


class ScheduleRequest(RunRequest):
    """A schedule: the run to queue, and when."""

    name: ScheduleName
    trigger: Trigger
    enabled: bool = True

    @property
    def run(self) -> RunRequest:
        return RunRequest(workload=self.workload, target=self.target, durations=self.durations)


class ScheduleChange(Strict):
    """What to change of a schedule; what is left out or null stays."""

    name: ScheduleName | None = None
    workload: WorkloadChoice | None = None
    target: Target | None = None
    durations: DurationOverrides | None = None
    trigger: Trigger | None = None
    enabled: bool | None = None


class Firing(BaseModel):
    """What came of a fire time: `queued` (then `run_id` is set), `missed` or `failed` (then `detail` says why)."""

    due_at: Time
    outcome: str
    run_id: str | None
    detail: str


class Schedule(BaseModel):
    """A schedule. `next_fire_at` is null when it will not fire again, or is disabled.

    `fault` is why it cannot be scheduled: what is stored of it cannot be read (any more). Then it does not fire, and
    what cannot be read of it is null.
    """

    id: str
    name: str
    workload: str | dict[str, Any] | None
    target: Target | None
    durations: DurationOverrides | None
    trigger: AnyTrigger | None
    enabled: bool
    fault: str | None
    next_fire_at: Time | None
    last_firing: Firing | None
    last_missed_at: Time | None
    created_at: Time
    created_by: str


class ScheduleDetail(Schedule):
    """A schedule shown alone, with its next fire times."""

    next_fire_times: list[Time]


@router.post("/schedules", status_code=201, responses=responses(*_REFUSALS))
def create_schedule(
    request: ScheduleRequest, response: Response, services: Context, caller: Operator
) -> ScheduleDetail:
    """Make a schedule. Its workload is looked up and checked now, and again each time it fires."""
    services.runs.resolve(request.run)
    now = services.clock.wall()
    trigger = anchored(parse_trigger(request.trigger), now)
    row = ScheduleRow(
        id=secrets.token_hex(4),
        name=request.name,
        request=request.run.model_dump(mode="json"),
        trigger=trigger,
        enabled=request.enabled,
        next_fire_at=_next_fire_at(trigger, request.enabled, now),
        created_at=now,
        created_by=caller.name,
    )
    _save(services, row)
    services.scheduler.refresh(row.id)
    response.headers["Location"] = f"{API_PREFIX}/schedules/{row.id}"
    return _detail(services, row.id)


@router.get("/schedules", responses=responses(Code.PAGE_TOKEN_INVALID))
def list_schedules(services: Context, caller: Reader, limit: Limit = 50, page: PageToken = None) -> Page[Schedule]:
    """Schedules, by name."""
    after = decode_page(page, _SORT, _KEY)
    with services.database.snapshot() as session:
        rows = schedules_page(session, limit + 1, after)
        return page_of(rows, limit, _SORT, lambda row: [row.name], lambda row: Schedule(**_fields(session, row)))


@router.get("/schedules/{schedule_id}", responses=responses(Code.NOT_FOUND))
def show_schedule(schedule_id: ShortId, services: Context, caller: Reader) -> ScheduleDetail:
    """A schedule, with its next fire times."""
    return _detail(services, schedule_id)


@router.patch("/schedules/{schedule_id}", responses=responses(*_REFUSALS))
def change_schedule(
    schedule_id: ShortId, change: ScheduleChange, services: Context, caller: Operator
) -> ScheduleDetail:
    """Enable, disable or change a schedule. Runs that it queued go on."""
    now = services.clock.wall()
    given = None if change.trigger is None else anchored(parse_trigger(change.trigger), now)
    try:
        with services.database.session() as session:
            take_turns(session, f"schedule {schedule_id}")
            row = _row(session, schedule_id)
            # Read and written in one transaction: of two changes at once, neither is lost.
            if change.workload is not None or change.target is not None or change.durations is not None:
                row.request = _changed(services, row, change).model_dump(mode="json")
            row.name = _either(change.name, row.name)
            enabled = _either(change.enabled, row.enabled)
            if given is not None or enabled != row.enabled:
                row.trigger, row.enabled = given or row.trigger, enabled
                row.next_fire_at = _next_fire_at(row.trigger, enabled, now)
    except IntegrityError as error:
        raise _name_taken(change.name) from error
    services.scheduler.refresh(schedule_id)
    return _detail(services, schedule_id)


@router.delete("/schedules/{schedule_id}", status_code=204, responses=responses(Code.NOT_FOUND))
def delete_schedule(schedule_id: ShortId, services: Context, caller: Operator) -> None:
    """Remove a schedule and the record of its firings. Runs that it queued stay."""
    with services.database.session() as session:
        session.delete(_row(session, schedule_id))
    services.scheduler.refresh(schedule_id)


@router.get("/schedules/{schedule_id}/firings", responses=responses(Code.NOT_FOUND, Code.PAGE_TOKEN_INVALID))
def list_firings(
    schedule_id: ShortId, services: Context, caller: Reader, limit: Limit = 50, page: PageToken = None
) -> Page[Firing]:
    """What came of a schedule's fire times, newest first."""
    after = decode_page(page, _FIRINGS, _FIRINGS_KEY)
    with services.database.snapshot() as session:
        _row(session, schedule_id)
        rows = firings_page(session, schedule_id, limit + 1, after)
    return page_of(rows, limit, _FIRINGS, lambda row: (row.due_at, row.id), _firing)


def _changed(services: Context, row: ScheduleRow, change: ScheduleChange) -> RunRequest:
    """The run to queue from now on, which is looked up and checked. Raises Problem."""
    if change.workload is not None and change.target is not None:
        durations = change.durations if change.durations is not None else DurationOverrides()
        with suppress(Problem):
            durations = _either(change.durations, read_request(row).durations)
        request = RunRequest(workload=change.workload, target=change.target, durations=durations)
    else:
        stored = read_request(row)
        request = RunRequest(
            workload=_either(change.workload, stored.workload),
            target=_either(change.target, stored.target),
            durations=_either(change.durations, stored.durations),
        )
    services.runs.resolve(request)
    return request


def _next_fire_at(trigger: dict[str, Any], enabled: bool, now: float) -> float | None:
    """Raises Problem(schedule_invalid) for a date that has passed."""
    if not enabled:
        return None
    # As many as are ever shown: what cannot be computed is refused here and not stored.
    times = fire_times(parse_trigger(trigger).trigger(), now, _NEXT_SHOWN)
    if not times:
        fault = FieldFault("trigger", f"this time has passed; it is {datetime.fromtimestamp(now, UTC).isoformat()}")
        raise Problem(Code.SCHEDULE_INVALID, "the schedule would never fire", [fault])
    return times[0]


def _save(services: Context, row: ScheduleRow) -> None:
    try:
        with services.database.session() as session:
            session.add(row)
    except IntegrityError as error:
        raise _name_taken(row.name) from error


def _name_taken(name: str | None) -> Problem:
    fault = FieldFault("name", "take another name, or change the schedule that has it")
    return Problem(Code.CONFLICT, f"there is a schedule {name} already", [fault])


def _row(session: Session, schedule_id: str) -> ScheduleRow:
    row = session.get(ScheduleRow, schedule_id)
    if row is None:
        raise Problem(Code.NOT_FOUND, f"there is no schedule {schedule_id}")
    return row


def _detail(services: Context, schedule_id: str) -> ScheduleDetail:
    with services.database.snapshot() as session:
        row = _row(session, schedule_id)
        fields = _fields(session, row)
    trigger = fields["trigger"]
    shown = row.enabled and fields["fault"] is None
    times = fire_times(trigger.trigger(), services.clock.wall(), _NEXT_SHOWN) if shown else []
    return ScheduleDetail(**fields, next_fire_times=times)


def _fields(session: Session, row: ScheduleRow) -> dict[str, Any]:
    request, trigger, fault = _readable(row)
    firings = select(FiringRow).where(FiringRow.schedule_id == row.id).order_by(FiringRow.due_at.desc()).limit(1)
    last = session.scalars(firings).first()
    missed = session.scalars(firings.where(FiringRow.outcome == MISSED)).first()
    return {
        "id": row.id,
        "name": row.name,
        "workload": request and request.workload,
        "target": request and request.target,
        "durations": request and request.durations,
        "trigger": trigger,
        "enabled": row.enabled,
        "fault": fault,
        "next_fire_at": row.next_fire_at if fault is None else None,
        "last_firing": None if last is None else _firing(last),
        "last_missed_at": None if missed is None else missed.due_at,
        "created_at": row.created_at,
        "created_by": row.created_by,
    }


def _readable(row: ScheduleRow) -> tuple[RunRequest | None, AnyTrigger | None, str | None]:
    """What can be read of a row, and why the rest cannot."""
    request, trigger, faults = None, None, []
    try:
        request = read_request(row)
    except Problem as problem:
        faults.append(reason_of(problem))
    try:
        trigger = read_trigger(row)
    except Problem as problem:
        faults.append(reason_of(problem))
    return request, trigger, "; ".join(faults) or None


def _firing(row: FiringRow) -> Firing:
    return Firing(due_at=row.due_at, outcome=row.outcome, run_id=row.run_id, detail=row.detail)


def _either(given: Value | None, present: Value) -> Value:
    return present if given is None else given
