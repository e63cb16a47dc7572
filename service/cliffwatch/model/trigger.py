"""When a schedule is due: cron in a time zone, an interval, or one date.

Cron expressions are read as in crontab(5). A local time that a DST change skips fires at the moment at which it would
have come without the change; a local time that comes twice fires once. With `*` for the hours, skipped times do not
fire, and repeated times fire twice. Day of month and day of week cannot both be restricted, because programs disagree
on what that means.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, available_timezones

from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger
from pydantic import (
    AfterValidator,
    AwareDatetime,
    Field,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.base.units import Duration
from cliffwatch.model.document import Strict

_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = ("minute", "hour", "day", "month", "day_of_week")
_RANGES = {"minute": (0, 59), "hour": (0, 23), "day": (1, 31), "month": (1, 12), "day_of_week": ("sun", "sat")}
#: Syntax of crontab(5), so that APScheduler's own extensions are refused.
_NUMBERS = re.compile(r"[0-9*,/-]+")
_NAMES = re.compile(r"(?:[0-9*,/-]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat)+")
_PATTERNS = (_NUMBERS, _NUMBERS, _NUMBERS, _NAMES, _NAMES)
_EXPRESSION_LIMIT = 500
#: Range of fire times: times outside can be written, but clocks and time zones cannot represent them.
EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)
#: A DST change moves the clock by less than this.
_CHANGE = timedelta(hours=3)


def _within_reach(moment: datetime) -> datetime:
    if not EARLIEST <= moment < LATEST:
        raise ValueError(
            f"{moment.isoformat()} is out of range; write a time from {EARLIEST:%Y} on and before {LATEST:%Y}"
        )
    return moment


Moment = Annotated[AwareDatetime, AfterValidator(_within_reach)]


class CronSpecification(Strict):
    """Five fields as in crontab(5), read in a time zone."""

    kind: Literal["cron"]
    expression: Annotated[str, Field(max_length=_EXPRESSION_LIMIT)]
    time_zone: Annotated[str, Field(max_length=100)] = "UTC"

    @field_validator("time_zone")
    @classmethod
    def _zone_exists(cls, value: str) -> str:
        if value not in _time_zones():
            raise ValueError(f"{value!r} is not a time zone; write one of the IANA database, such as Europe/Berlin")
        return value

    @model_validator(mode="after")
    def _can_fire(self) -> "CronSpecification":
        try:
            never_comes = self.trigger().get_next_fire_time(None, datetime.now(UTC)) is None
        except ValueError as error:
            raise ValueError(f"`expression`: {error}") from error
        if never_comes:
            raise ValueError(f"`expression`: {self.expression!r} names a date that never comes")
        return self

    def trigger(self) -> BaseTrigger:
        """Trigger of the expression. Raises ValueError that says what would be right."""
        fields = self.expression.lower().split()
        understood = [pattern.fullmatch(field) for pattern, field in zip(_PATTERNS, fields, strict=False)]
        if len(fields) != len(_FIELDS) or not all(understood):
            raise ValueError(
                f"{self.expression!r} is not a cron expression; write minute, hour, day of month, month and day of "
                "week, such as '0 2 * * sat'"
            )
        values = dict(zip(_FIELDS, fields, strict=True))
        if not values["day"].startswith("*") and not values["day_of_week"].startswith("*"):
            raise ValueError("day of month and day of week are both restricted; make two schedules")
        values["day_of_week"] = _weekdays(values["day_of_week"])
        for name, value in values.items():
            self._check_field(name, value)
        zone = ZoneInfo(self.time_zone)
        return _LocalTimes(values, zone, has_all_hours=fields[1].startswith("*"))

    def _check_field(self, name: str, value: str) -> None:
        """Check one field. Raises ValueError that names the field, as APScheduler's does not, and its range."""
        try:
            CronTrigger(**{name: value}, timezone=UTC)
        except ValueError as error:
            reason = str(error).partition("': ")[2] or str(error)
            low, high = _RANGES[name]
            raise ValueError(
                f"{self.expression!r}: {name.replace('_', ' ')} {value!r} cannot be ({reason}); write {low} to {high}"
            ) from error


class IntervalSpecification(Strict):
    """A fixed interval, counted from `start_at` (when the schedule was made, unless given)."""

    kind: Literal["interval"]
    every: Annotated[Duration, Field(ge=1, le=366 * 86_400)]
    start_at: Moment | None = None

    def trigger(self) -> BaseTrigger:
        return IntervalTrigger(seconds=self.every, start_date=self.start_at, end_date=LATEST, timezone=UTC)


class DateSpecification(Strict):
    """A single time: the schedule fires once."""

    kind: Literal["date"]
    at: Moment

    def trigger(self) -> BaseTrigger:
        return DateTrigger(run_date=self.at, timezone=UTC)


TriggerSpecification = Annotated[
    CronSpecification | IntervalSpecification | DateSpecification, Field(discriminator="kind")
]
_SPECIFICATION: TypeAdapter[CronSpecification | IntervalSpecification | DateSpecification] = TypeAdapter(
    TriggerSpecification
)


class _LocalTimes(BaseTrigger):  # type: ignore[misc]  # APScheduler is untyped
    """Cron trigger in local time. APScheduler finds the local times that match; this class finds the moment of each,
    because at DST changes APScheduler skips whole days (its issue 1059) and returns times that match nothing."""

    def __init__(self, fields: dict[str, str], zone: ZoneInfo, *, has_all_hours: bool) -> None:
        """`has_all_hours`: `*` for the hours, so that skipped times do not fire and repeated times fire twice.

        Raises ValueError for invalid `fields`.
        """
        # UTC stands in for local time: in it, no time is skipped and none comes twice.
        self._wall = CronTrigger(**fields, timezone=UTC, end_date=LATEST + timedelta(days=1))
        self._zone = zone
        self._has_all_hours = has_all_hours

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        earliest = now.astimezone(UTC)
        if previous_fire_time is not None:
            # Times of two zones are compared in UTC: a repeated time never equals one of another zone (PEP 495).
            previous = previous_fire_time.astimezone(UTC)
            earliest = previous + timedelta(microseconds=1) if previous <= earliest else earliest
        wall = earliest.astimezone(self._zone).replace(tzinfo=UTC)
        # Where times are repeated, local times are not in order.
        margin = _CHANGE if self._changes_about(earliest) else timedelta(0)
        found: datetime | None = None
        time = self._wall.get_next_fire_time(None, wall - margin)
        while time is not None and (found is None or time <= found.astimezone(self._zone).replace(tzinfo=UTC) + margin):
            moments = [moment for moment in self._moments(time) if moment >= earliest]
            found = min(moments if found is None else [found, *moments], default=None)
            if found is not None and not margin:
                break
            time = self._wall.get_next_fire_time(time, time)
        return None if found is None or found >= LATEST else found.astimezone(self._zone)

    def _changes_about(self, moment: datetime) -> bool:
        offsets = {(moment + shift).astimezone(self._zone).utcoffset() for shift in (-_CHANGE, timedelta(0), _CHANGE)}
        return len(offsets) > 1

    def _moments(self, wall: datetime) -> list[datetime]:
        """Moments of local time `wall`, in UTC; if skipped, when it would have come, or none with `has_all_hours`."""
        local = [wall.replace(tzinfo=self._zone, fold=fold) for fold in (0, 1)]
        first, second = (each.astimezone(UTC) for each in local)
        if first == second or not self._has_all_hours:
            return [first]
        # A skipped time changes when it is converted to UTC and back.
        shown = first.astimezone(self._zone).replace(tzinfo=UTC, fold=0)
        return [first, second] if shown == wall else []


@cache
def _time_zones() -> frozenset[str]:
    # These two are no IANA zones: the zone that the machine has set, and that of a machine without one.
    return frozenset(available_timezones() - {"localtime", "Factory"})


def parse_trigger(
    document: dict[str, Any],
) -> CronSpecification | IntervalSpecification | DateSpecification:
    """Parse a trigger document. Raises Problem(schedule_invalid) that names every field at fault."""
    try:
        return _SPECIFICATION.validate_python(document)
    except ValidationError as error:
        raise Problem(Code.SCHEDULE_INVALID, "the trigger is not valid", faults_of(error, "trigger")) from error


def anchored(
    specification: CronSpecification | IntervalSpecification | DateSpecification, now: float
) -> dict[str, Any]:
    """The document to store: an interval's start is fixed, so that a restart does not move its fire times."""
    if isinstance(specification, IntervalSpecification) and specification.start_at is None:
        # A whole second, and never after `now`: the first fire time is one interval later.
        specification = specification.model_copy(update={"start_at": datetime.fromtimestamp(int(now), UTC)})
    return specification.model_dump(mode="json")


def fire_times(trigger: BaseTrigger, after: float, count: int) -> list[float]:
    """The next fire times later than `after`, in seconds since the epoch; fewer than `count` if the trigger ends."""
    return list(islice(_iterate(trigger, after), count))


def fire_times_until(trigger: BaseTrigger, first: float, until: float, count: int) -> list[float]:
    """The fire times after `first` and up to `until`, `count` at most."""
    times = []
    for moment in islice(_iterate(trigger, first), count):
        if moment > until:
            break
        times.append(moment)
    return times


def _iterate(trigger: BaseTrigger, after: float) -> Iterator[float]:
    moment = datetime.fromtimestamp(after, UTC)
    # A trigger gives times from `now` on; only what is later than `after` is wanted.
    found = trigger.get_next_fire_time(None, moment)
    while found is not None:
        if found.timestamp() > after:
            yield found.timestamp()
        if isinstance(trigger, DateTrigger):
            return
        found = trigger.get_next_fire_time(found, found)


def _weekdays(field: str) -> str:
    """Day-of-week field by names: crontab counts from Sunday (0 or 7), APScheduler from Monday."""
    if field == "*":
        return field
    days: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        low, _, high = span.partition("-")
        if span == "*":
            first, last = 0, 6
        else:
            first = _weekday(low)
            last = _weekday(high) if high else (6 if step else first)
        # A range may run over the end of the week: sat-mon.
        last += 7 if last < first else 0
        if step and (not step.isdecimal() or int(step) == 0):
            raise ValueError(f"{part!r} is not a day of the week; a step is a number from 1 on")
        days.update(day % 7 for day in range(first, last + 1, int(step or 1)))
    return ",".join(_DAYS[day] for day in sorted(days))


def _weekday(text: str) -> int:
    if text in _DAYS:
        return _DAYS.index(text)
    if text.isdecimal() and int(text) <= 7:
        return int(text)
    raise ValueError(f"{text!r} is not a day of the week; write sun to sat, or 0 (Sunday) to 7 (Sunday)")
