"""What a dry run says of a workload's limits: those that a run on this target could not be held to."""

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
