"""Start and end of each phase of a run, from its events: for the report and for the run's live page."""

from collections.abc import Iterable
from itertools import zip_longest

from cliffwatch.journal import Event, EventType
from cliffwatch.model.phase import Phase


def phase_bounds(events: Iterable[Event]) -> dict[str, tuple[float, float]]:
    """Planned start and end by phase, in seconds since the epoch."""
    bounds: dict[str, tuple[float, float]] = {}
    entered = [event for event in events if event.type is EventType.PHASE]
    for event, following in zip_longest(entered, entered[1:]):
        # The preparation has no planned end: it ends where the next phase begins.
        start = _start(event)
        begins = start if following is None else _start(following)
        end = event.moment("end")
        end = begins if end is None else end
        # A warm-up that waits for the steady state ends when it is reached, which is before its planned end.
        is_cut = event.name == Phase.WARM_UP and start < begins < end
        # A phase is recorded again when the load is shifted or resumed: the last record holds.
        bounds[event.name] = (start, begins if is_cut else end)
    return bounds


def _start(event: Event) -> float:
    start = event.moment("start")
    return event.at if start is None else start
