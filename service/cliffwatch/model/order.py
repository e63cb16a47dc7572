"""One run as it was asked for; order.json of its journal."""

from cliffwatch.model.document import Name, Strict
from cliffwatch.model.target import Target
from cliffwatch.model.workload import Workload


class RunOrder(Strict):
    """One run as it was asked for; order.json of its journal."""

    run_id: Name
    workload: Workload
    target: Target
    created_at: float
    created_by: str
    schedule_id: str | None = None
