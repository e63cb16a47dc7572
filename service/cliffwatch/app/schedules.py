"""Schedule service: create, change and remove schedules.

A trigger whose fire times cannot be computed is refused before it is stored.
"""

import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from cliffwatch.app.runs import RunService
from cliffwatch.app.scheduler import Scheduler
from cliffwatch.app.stored_schedules import read_request
from cliffwatch.base.clock import Clock
from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.gate import blocks_of
from cliffwatch.model.request import RunRequest
from cliffwatch.model.schedule import ScheduleChange, ScheduleRequest
from cliffwatch.model.trigger import anchored, fire_times, parse_trigger
from cliffwatch.store.database import Database, take_turns
from cliffwatch.store.models import ScheduleRow

Value = TypeVar("Value")
#: Number of next fire times that are shown, and that are computed before a schedule is stored.
NEXT_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ScheduleService:
    """Schedules as rows of the database; the scheduler reloads each one as soon as it is changed."""

    database: Database
    clock: Clock
    runs: RunService
    scheduler: Scheduler

    def create(self, request: ScheduleRequest, created_by: str) -> str:
        """Create a schedule and return its id. The workload is looked up and checked now, and again each time it fires.

        Drives of other hosts are looked for when it fires; now, only their Prometheus has to be known.
        A target drive must be present: its erasure is confirmed for this drive only, so its composition is stored, and
        a firing fails if another drive has its name by then. Raises Problem: schedule_invalid, workload_invalid,
        not_found, target_missing, or conflict where the schedule's name is taken.
        """
        self.runs.resolve(request.run)
        blocks = blocks_of(request.target)
        now = self.clock.wall()
        trigger = anchored(parse_trigger(request.trigger), now)
        row = ScheduleRow(
            id=secrets.token_hex(4),
            name=request.name,
            request=request.run.model_dump(mode="json"),
            target_blocks=blocks,
            trigger=trigger,
            enabled=request.enabled,
            next_fire_at=_next_fire_at(trigger, request.enabled, now),
            created_at=now,
            created_by=created_by,
        )
        schedule_id = row.id
        try:
            with self.database.session() as session:
                session.add(row)
        except IntegrityError as error:
            raise _name_taken(request.name) from error
        self.scheduler.refresh(schedule_id)
        return schedule_id

    def change(self, schedule_id: str, change: ScheduleChange) -> None:
        """Enable, disable or change a schedule. Raises Problem as `create` does."""
        now = self.clock.wall()
        given = None if change.trigger is None else anchored(parse_trigger(change.trigger), now)
        # Composition of the target that is confirmed now; an unchanged target keeps the one of its own confirmation.
        blocks = None if change.target is None else blocks_of(change.target)
        try:
            with self.database.session() as session:
                take_turns(session, f"schedule {schedule_id}")
                row = row_of(session, schedule_id)
                # Read and written in one transaction, so that neither of two concurrent changes is lost.
                parts = (change.workload, change.target, change.durations, change.labels, change.drives)
                if any(part is not None for part in parts):
                    row.request = self._changed(row, change).model_dump(mode="json")
                if change.target is not None:
                    row.target_blocks = blocks
                row.name = _either(change.name, row.name)
                enabled = _either(change.enabled, row.enabled)
                if given is not None or enabled != row.enabled:
                    row.trigger, row.enabled = given or row.trigger, enabled
                    row.next_fire_at = _next_fire_at(row.trigger, enabled, now)
        except IntegrityError as error:
            raise _name_taken(change.name) from error
        self.scheduler.refresh(schedule_id)

    def delete(self, schedule_id: str) -> None:
        """Remove a schedule and the record of its firings. Raises Problem(not_found)."""
        with self.database.session() as session:
            session.delete(row_of(session, schedule_id))
        self.scheduler.refresh(schedule_id)

    def _changed(self, row: ScheduleRow, change: ScheduleChange) -> RunRequest:
        """Run request of a schedule after `change`; its workload is looked up and checked. Raises Problem."""
        if change.workload is not None and change.target is not None:
            # The stored request may be unreadable; a change of both parts replaces it.
            stored = RunRequest(workload=change.workload, target=change.target)
            with suppress(Problem):
                stored = read_request(row)
        else:
            stored = read_request(row)
        request = RunRequest(
            workload=_either(change.workload, stored.workload),
            target=_either(change.target, stored.target),
            durations=_either(change.durations, stored.durations),
            labels=_either(change.labels, stored.labels),
            drives=_either(change.drives, stored.drives),
        )
        self.runs.resolve(request)
        return request


def row_of(session: Session, schedule_id: str) -> ScheduleRow:
    """Row of a schedule. Raises Problem(not_found)."""
    row = session.get(ScheduleRow, schedule_id)
    if row is None:
        raise Problem(Code.NOT_FOUND, f"there is no schedule {schedule_id}")
    return row


def _next_fire_at(trigger: dict[str, Any], enabled: bool, now: float) -> float | None:
    """Next fire time of a trigger; None while disabled. Raises Problem(schedule_invalid) for a date that has passed."""
    if not enabled:
        return None
    # As many as are ever shown: a trigger that cannot be computed is refused here and not stored.
    times = fire_times(parse_trigger(trigger).trigger(), now, NEXT_SHOWN)
    if not times:
        it_is = format(datetime.fromtimestamp(now, UTC), "%Y-%m-%d %H:%M:%SZ")
        fault = FieldFault("trigger", f"this time has passed; it is {it_is}")
        raise Problem(Code.SCHEDULE_INVALID, "the schedule would never fire", [fault])
    return times[0]


def _name_taken(name: str | None) -> Problem:
    fault = FieldFault("name", "use another name, or change the existing schedule")
    return Problem(Code.CONFLICT, f"there is a schedule {name} already", [fault])


def _either(given: Value | None, present: Value) -> Value:
    return present if given is None else given
