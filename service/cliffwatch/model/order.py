"""Run order: one run as it was requested, order.json of its journal."""

from typing import Any

from cliffwatch.model.document import Name, Strict
from cliffwatch.model.drives import Drives
from cliffwatch.model.target import AnyTarget, Target
from cliffwatch.model.workload import Workload

#: Name of the part of a run that has one target.
ONLY_PART = "local"


class RunOrder(Strict):
    """One run as it was requested; order.json of its journal.

    Each of `more_targets` is loaded beside `target`, by a part of its own. `drives`: drives to watch instead of those
    below the targets.
    """

    run_id: Name
    workload: Workload
    target: Target
    created_at: float
    created_by: str
    schedule_id: str | None = None
    more_targets: tuple[Target, ...] = ()
    drives: Drives | None = None

    @property
    def parts(self) -> dict[str, AnyTarget]:
        """Targets by the name of the part that loads each: `local`, or `part-1`, `part-2`, … of several."""
        if not self.more_targets:
            return {ONLY_PART: self.target}
        return {f"part-{number}": target for number, target in enumerate((self.target, *self.more_targets), 1)}

    def to_document(self) -> dict[str, Any]:
        """Content of order.json, without empty fields that earlier versions do not know, so that they can read it."""
        later = {"more_targets": self.more_targets, "drives": self.drives}
        return self.model_dump(mode="json", exclude={name for name, value in later.items() if not value})
