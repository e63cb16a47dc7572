"""The safety gate: no, unless there is proof.

    examination = examine(target, run_id)                       looks, writes nothing
    objections = [*examination.objections, *objections_to_plan(examination, plan, reserve_ratio)]
    require_clear(objections)                                   raises Problem with every reason at once
    with hold(examination) as target:                           looks again, and claims the target for the run
        ...

A device is written to only when its serial, WWN, UUID or backing file was named, the sentence of
`confirmation_sentence` was typed, nothing is mounted from it, stacked on it or swapped to it, no process writes to it,
wipefs and blkid find nothing on it, and the kernel grants it exclusively; all of this under every name that its blocks
have. In a directory a run writes to new files in a directory of its own, and a stated share of the volume stays free.
`OBJECTIONS` lists all that can stand in the way.
"""

from cliffwatch.gate.examination import Examination, confirmation_sentence, examine, targets_overlap
from cliffwatch.gate.holding import HeldTarget, hold
from cliffwatch.gate.objections import OBJECTIONS, Objection, require_clear
from cliffwatch.gate.run_directory import remove_run_directory
from cliffwatch.gate.space import notes_on_plan, objections_to_plan

__all__ = [
    "OBJECTIONS",
    "Examination",
    "HeldTarget",
    "Objection",
    "confirmation_sentence",
    "examine",
    "hold",
    "notes_on_plan",
    "objections_to_plan",
    "remove_run_directory",
    "require_clear",
    "targets_overlap",
]
