"""Run order: one run as it was requested, order.json of its journal."""

from typing import Any

from cliffwatch.model.document import Name, Strict
from cliffwatch.model.drives import Drives
from cliffwatch.model.part_names import ONLY_PART, PartName
from cliffwatch.model.target import AnyTarget, Target
from cliffwatch.model.workload import Workload


class RunOrder(Strict):
    """One run as it was requested; order.json of its journal.

    Each of `more_targets` is loaded beside `target`, by a part of its own; `part_names` has the names of all of them,
    in the same order. `drives`: drives to watch instead of those below the targets.
    """

    run_id: Name
    workload: Workload
    target: Target
    created_at: float
    created_by: str
    schedule_id: str | None = None
    more_targets: tuple[Target, ...] = ()
    drives: Drives | None = None
    part_names: tuple[PartName, ...] = ()

    @property
    def parts(self) -> dict[str, AnyTarget]:
        """Targets by the name of the part that loads each: `local` of one target. Parts of earlier versions had no
        names of their own: `part-1`, `part-2`, …"""
        if not self.more_targets:
            return {ONLY_PART: self.target}
        targets = (self.target, *self.more_targets)
        names = self.part_names or tuple(f"part-{number}" for number in range(1, len(targets) + 1))
        return dict(zip(names, targets, strict=True))

    def to_document(self) -> dict[str, Any]:
        """Content of order.json, without empty fields that earlier versions do not know, so that they can read it."""
        later = {"more_targets": self.more_targets, "drives": self.drives, "part_names": self.part_names}
        return self.model_dump(mode="json", exclude={name for name, value in later.items() if not value})
