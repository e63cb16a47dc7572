"""Plan of a run, as the API and the start form show it."""

from pydantic import BaseModel

from cliffwatch.app.runs import RunPlan
from cliffwatch.app.target_plans import confirmation_of
from cliffwatch.model.request import RunRequest
from cliffwatch.model.target import Target
from cliffwatch.model.workload import Workload


class PlannedWriteBody(BaseModel):
    """A file or a device that the run would write to."""

    path: str
    size_bytes: int


class ObjectionBody(BaseModel):
    """A reason for which the safety gate would refuse the run. `meaning` is that of the code, `message` this case."""

    code: str
    meaning: str
    message: str


class PlanBody(BaseModel):
    """What a run would do. `written_bytes` is null if nothing bounds the rate.

    With several targets, `path` and `command` are those of the first, and `written_bytes` is the sum. `confirmation` is
    the sentence to give as `target.confirmation`, `confirmations` has those of all targets; null where none is needed.
    `planned_seconds` is the length of the load, `lasts` that of each phase in words. `drives` are drives of other hosts
    that the run would watch; empty if it would watch the drives below its targets. `part_names` are those of the parts
    of several targets, in the same order. `free_bytes` is the free space of the volume that the first directory is on,
    `drive_bytes` the size of all drives below the targets; null where neither is known.
    `waits_for` is the run on its target that it would wait for, or null.
    """

    run_id: str
    target: Target
    more_targets: tuple[Target, ...] = ()
    part_names: tuple[str, ...] = ()
    path: str
    writes: list[PlannedWriteBody]
    command: list[str]
    written_bytes: int | None
    direct: bool
    notes: list[str]
    objections: list[ObjectionBody]
    confirmation: str | None
    confirmations: list[str | None]
    drives: list[str]
    free_bytes: int | None
    drive_bytes: int | None
    waits_for: str | None
    planned_seconds: float
    lasts: str
    workload: Workload


def plan_body(request: RunRequest, plan: RunPlan) -> PlanBody:
    """API body of the plan of a run request."""
    first, plans = plan.parts[0], [part.plan for part in plan.parts]
    written = [each.written_bytes for each in plans if each.written_bytes is not None]
    confirmations = [confirmation_of(part) for part in plan.parts]
    sizes = {drive.major_minor: drive.size_bytes for part in plan.parts for drive in part.examination.drives}
    return PlanBody(
        run_id=plan.run_id,
        target=request.target,
        more_targets=request.more_targets,
        part_names=plan.part_names,
        path=str(first.examination.path),
        writes=[
            PlannedWriteBody(path=str(write.path), size_bytes=write.size_bytes)
            for each in plans
            for write in each.writes
        ],
        command=list(first.plan.command),
        written_bytes=sum(written) if len(written) == len(plans) else None,
        direct=all(each.direct for each in plans),
        notes=list(plan.notes),
        objections=[
            ObjectionBody(code=item.code, meaning=item.meaning, message=item.message) for item in plan.objections
        ],
        confirmation=confirmations[0],
        confirmations=confirmations,
        drives=list(plan.drives),
        free_bytes=next((part.free_bytes for part in plan.parts if part.free_bytes is not None), None),
        drive_bytes=sum(sizes.values()) or None,
        waits_for=plan.waits_for,
        planned_seconds=plan.workload.phases.load_seconds,
        lasts=plan.workload.phases.words,
        workload=plan.workload,
    )
