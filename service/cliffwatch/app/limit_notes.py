"""Notes of a dry run on limits that cannot be judged: write amplification where no drive is measured."""

from cliffwatch.gate import Examination
from cliffwatch.model.limits import LimitSubject, parse_limit
from cliffwatch.model.workload import Workload


def notes_on_limits(workload: Workload, examination: Examination) -> list[str]:
    """A limit that cannot be judged makes the run `invalid`, which would be known only at its end."""
    if examination.drives:
        return []
    limits = [text for text in workload.limits if parse_limit(text).subject is LimitSubject.AMPLIFICATION]
    return [
        f'the limit "{text}" cannot be judged, since no drive is measured on this target: the run would be invalid; '
        "leave the limit out, or name a target on a drive"
        for text in limits
    ]
