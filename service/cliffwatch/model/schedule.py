"""Request for a schedule: the run to queue, and when."""

from typing import Annotated, Any

from pydantic import Field

from cliffwatch.model.document import Strict
from cliffwatch.model.request import RunRequest, WorkloadChoice
from cliffwatch.model.target import Target
from cliffwatch.model.workload import DurationOverrides

ScheduleName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")]


Trigger = Annotated[dict[str, Any], Field(description="`kind` is cron (`expression`, `time_zone`), interval or date")]


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
