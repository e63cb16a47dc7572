"""Read schedules from the table. A row that cannot be read is listed with the reason, and not scheduled."""

from dataclasses import dataclass

from pydantic import ValidationError

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.model.request import RunRequest
from cliffwatch.model.trigger import LATEST, CronSpecification, DateSpecification, IntervalSpecification, parse_trigger
from cliffwatch.store.models import ScheduleRow


@dataclass(frozen=True, slots=True)
class StoredSchedule:
    """Stored schedule: the run to queue, and when."""

    request: RunRequest
    trigger: CronSpecification | IntervalSpecification | DateSpecification


def read_schedule(row: ScheduleRow) -> StoredSchedule:
    """Read a stored schedule. Raises Problem(schedule_invalid) with the part of the row that cannot be read."""
    return StoredSchedule(read_request(row), read_trigger(row))


def read_trigger(row: ScheduleRow) -> CronSpecification | IntervalSpecification | DateSpecification:
    """Read a stored trigger. Raises Problem(schedule_invalid), also where the next fire time is no valid time."""
    trigger = parse_trigger(row.trigger)
    if row.next_fire_at is not None and not 0 <= row.next_fire_at < LATEST.timestamp():
        raise Problem(Code.SCHEDULE_INVALID, f"the next fire time that is stored, {row.next_fire_at!r}, is no time")
    return trigger


def read_request(row: ScheduleRow) -> RunRequest:
    """Read a schedule's run request. Raises Problem(schedule_invalid)."""
    try:
        return RunRequest.model_validate(row.request)
    except ValidationError as error:
        raise Problem(Code.SCHEDULE_INVALID, "the run that it queues is not valid", faults_of(error)) from error


def reason_of(problem: Problem) -> str:
    """Text of a problem and its faults, on one line."""
    return "; ".join([problem.detail, *(f"{fault.field}: {fault.message}" for fault in problem.faults)])
