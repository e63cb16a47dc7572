"""Gaps in a run's measurement that its events record."""

import math
from collections.abc import Sequence

from cliffwatch.analysis.coverage import Gap
from cliffwatch.analysis.run_evidence import LoadEnd
from cliffwatch.journal import Event, EventType, ends_load

#: Reason of the gap after a load that failed.
LOAD_FAILED = "load_failed"


def recorded_gaps(events: Sequence[Event]) -> list[Gap]:
    """Gaps from events: one for each gap event, and one for all time after a load that failed."""
    gaps = []
    for event in events:
        if event.type is EventType.GAP:
            start, end = event.moment("start"), event.moment("end")
            if start is not None and end is not None:
                gaps.append(Gap(start, end, event.name))
        elif ends_load(event) and event.detail.get("how") == LoadEnd.FAILED:
            # The time before it, up to which the load is judged, was lost by the same failure.
            gaps.append(Gap(math.nextafter(event.at, 0.0), math.inf, LOAD_FAILED))
    return gaps
