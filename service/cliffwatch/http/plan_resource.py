"""What a run would do, as the API and the start form show it."""

from pydantic import BaseModel

from cliffwatch.app.runs import RunPlan
from cliffwatch.model.request import RunRequest
from cliffwatch.model.target import Target
from cliffwatch.model.workload import Workload


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


def plan_body(request: RunRequest, plan: RunPlan) -> PlanBody:
    """What a run of the request would do."""
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
