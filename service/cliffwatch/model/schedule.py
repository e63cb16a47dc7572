"""Request for a schedule: the run to queue, and when."""

from typing import Annotated, Any

from pydantic import Field, field_validator

from cliffwatch.model.annotations import Labels
from cliffwatch.model.document import Strict
from cliffwatch.model.drives import Drives
from cliffwatch.model.request import RunRequest, WorkloadChoice
from cliffwatch.model.target import AnyTarget, Target
from cliffwatch.model.workload import DurationOverrides

ScheduleName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")]


Trigger = Annotated[dict[str, Any], Field(description="`kind` is cron (`expression`, `time_zone`), interval or date")]


class ScheduleRequest(RunRequest):
    """A schedule: the run to queue, and when."""

    name: ScheduleName
    trigger: Trigger
    enabled: bool = True

    @field_validator("more_targets")
    @classmethod
    def _has_one_target(cls, value: tuple[AnyTarget, ...]) -> tuple[AnyTarget, ...]:
        # A confirmation to erase a drive stores what the drive is made of, and for one drive only.
        if value:
            raise ValueError("a schedule's run has one target; make a schedule for each, or leave them out")
        return value

    @property
    def run(self) -> RunRequest:
        return RunRequest(
            workload=self.workload,
            target=self.target,
            durations=self.durations,
            labels=self.labels,
            drives=self.drives,
        )


class ScheduleChange(Strict):
    """Changes of a schedule; fields that are left out or null stay."""

    name: ScheduleName | None = None
    workload: WorkloadChoice | None = None
    target: Target | None = None
    durations: DurationOverrides | None = None
    labels: Labels | None = None
    drives: Drives | None = None
    trigger: Trigger | None = None
    enabled: bool | None = None
