"""Schedules, as the API and the pages show them."""

from typing import Annotated, Any

from pydantic import BaseModel, Field
from sqlalchemy.orm import Session

from cliffwatch.app.scheduler import MISSED
from cliffwatch.app.schedules import NEXT_SHOWN, row_of
from cliffwatch.app.stored_schedules import read_request, read_trigger, reason_of
from cliffwatch.base.errors import Problem
from cliffwatch.http.context import Services
from cliffwatch.http.paging import Page, decode_page, page_of
from cliffwatch.http.times import Time
from cliffwatch.model.drives import PrometheusDrives
from cliffwatch.model.request import RunRequest
from cliffwatch.model.run_state import RunState, VerdictName
from cliffwatch.model.target import Target
from cliffwatch.model.trigger import (
    CronSpecification,
    DateSpecification,
    IntervalSpecification,
    fire_times,
)
from cliffwatch.model.workload import DurationOverrides
from cliffwatch.store.models import FiringRow, RunRow, ScheduleRow
from cliffwatch.store.queries import has_known_words, last_firing, schedules_page

_SORT, _KEY = "schedules:name", (str,)


AnyTrigger = Annotated[CronSpecification | IntervalSpecification | DateSpecification, Field(discriminator="kind")]


class Firing(BaseModel):
    """Outcome of a fire time: `queued` (then `run_id` is set), `missed` or `failed` (then `detail` says why).

    `run_state` and `run_verdict` are those of the run at this moment; null where there is none.
    For `queued`, `detail` says if only the name of the drive was checked against the confirmation of its erasure.
    """

    due_at: Time
    outcome: str
    run_id: str | None
    run_state: RunState | None
    run_verdict: VerdictName | None
    detail: str


class ScheduleBody(BaseModel):
    """A schedule. `next_fire_at` is null when it will not fire again, or is disabled.

    `fault` is why it cannot be scheduled: its stored fields cannot be read (any more). Then it does not fire, and the
    unreadable fields are null. `target_blocks` is the composition of its drive when the erasure was confirmed; each
    firing requires the same one. It is null for other targets, and for older schedules, which check the name only.
    `drives` are drives of other hosts that its runs watch; null where they watch those below the target.
    """

    id: str
    name: str
    workload: str | dict[str, Any] | None
    target: Target | None
    target_blocks: str | None
    durations: DurationOverrides | None
    labels: dict[str, str]
    drives: PrometheusDrives | None
    trigger: AnyTrigger | None
    enabled: bool
    fault: str | None
    next_fire_at: Time | None
    last_firing: Firing | None
    last_missed_at: Time | None
    created_at: Time
    created_by: str


class ScheduleDetail(ScheduleBody):
    """A schedule shown alone, with its next fire times."""

    next_fire_times: list[Time]


def schedule_detail(services: Services, schedule_id: str) -> ScheduleDetail:
    with services.database.snapshot() as session:
        row = row_of(session, schedule_id)
        fields = _fields(session, row)
    trigger = fields["trigger"]
    shown = row.enabled and fields["fault"] is None
    times = fire_times(trigger.trigger(), services.clock.wall(), NEXT_SHOWN) if shown else []
    return ScheduleDetail(**fields, next_fire_times=times)


def _fields(session: Session, row: ScheduleRow) -> dict[str, Any]:
    request, trigger, fault = _readable(row)
    last, missed = last_firing(session, row.id), last_firing(session, row.id, MISSED)
    return {
        "id": row.id,
        "name": row.name,
        "workload": request and request.workload,
        "target": request and request.target,
        "target_blocks": row.target_blocks,
        "durations": request and request.durations,
        "labels": request.labels if request else {},
        "drives": request and request.drives,
        "trigger": trigger,
        "enabled": row.enabled,
        "fault": fault,
        "next_fire_at": row.next_fire_at if fault is None else None,
        "last_firing": None if last is None else firing_body(session, last),
        "last_missed_at": None if missed is None else missed.due_at,
        "created_at": row.created_at,
        "created_by": row.created_by,
    }


def _readable(row: ScheduleRow) -> tuple[RunRequest | None, AnyTrigger | None, str | None]:
    """Request and trigger of a schedule's row, each None if unreadable; and why (None if both can be read)."""
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


def firing_body(session: Session, row: FiringRow) -> Firing:
    run = None if row.run_id is None else session.get(RunRow, row.run_id)
    run = run if run is not None and has_known_words(run) else None
    return Firing(
        due_at=row.due_at,
        outcome=row.outcome,
        run_id=row.run_id,
        run_state=None if run is None else RunState(run.state),
        run_verdict=None if run is None or run.verdict is None else VerdictName(run.verdict),
        detail=row.detail,
    )


def listed_schedules(services: Services, limit: int, page: str | None = None) -> Page[ScheduleBody]:
    """Schedules, by name. Raises Problem(page_token_invalid)."""
    after = decode_page(page, _SORT, _KEY)
    with services.database.snapshot() as session:
        rows = schedules_page(session, limit + 1, after)
        return page_of(rows, limit, _SORT, lambda row: [row.name], lambda row: ScheduleBody(**_fields(session, row)))
