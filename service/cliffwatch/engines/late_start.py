"""Begin of a load whose engine may not be ready in time."""

import math
from dataclasses import dataclass

from cliffwatch.model.window import BEGUN, EngineEvent


@dataclass(frozen=True, slots=True)
class Begin:
    """When a load begins and ends, in seconds since the epoch; `event` says that it begins later than planned."""

    start: float
    stop: float
    event: EngineEvent | None = None


def begin_of(now: float, start: float, stop: float, window_seconds: float, *, may_move: bool) -> Begin:
    """Begin of a load that was planned for `start` and is ready `now`: then, or on the next line of the grid. A run's
    first engine, which `may_move`, moves its end as far; another leaves out the windows before."""
    late = now - start
    if late <= 0:
        return Begin(start, stop)
    moved = math.ceil(late / window_seconds) * window_seconds
    if not may_move:
        return Begin(start + moved, stop)
    detail = {"start": start + moved, "late_seconds": round(late, 3)}
    return Begin(start + moved, stop + moved, EngineEvent(start + moved, BEGUN, detail))
