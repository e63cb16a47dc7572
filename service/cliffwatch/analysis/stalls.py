"""Stalls: windows in which nothing was completed although something was due. They were measured, and are not gaps."""

from collections.abc import Iterable
from dataclasses import dataclass

from cliffwatch.analysis.coverage import GAP_TOLERANCE
from cliffwatch.base.histogram import Histogram
from cliffwatch.journal.windows import JournalWindow
from cliffwatch.model.limits import Limit


@dataclass(frozen=True, slots=True)
class Stall:
    """Windows one after the other in which nothing was completed, from `start` to `end`, in seconds since the epoch.

    `oldest_seconds` is how old the oldest operation became that was due and not completed; None where the engine
    cannot know, and then it may be that nothing was due.
    """

    start: float
    end: float
    windows: int
    oldest_seconds: float | None

    @property
    def seconds(self) -> float:
        return self.end - self.start


def outstanding(window: JournalWindow, limit: Limit) -> Histogram | None:
    """What a limit on latency sees of a stalled window: the oldest operation, that has taken as long as it is old.

    None for a window in which something was completed, and for a limit on one kind of operation: which kind it is that
    waits, the engine does not say.
    """
    age = window.oldest_outstanding_seconds
    if limit.operation is not None or not window.stalled or age is None:
        return None
    return Histogram.from_values({round(age * 1e9): 1})


def stalls_in(windows: Iterable[JournalWindow]) -> list[Stall]:
    """The stalls of a run, in order of time."""
    stalls: list[Stall] = []
    for window in windows:
        age = window.oldest_outstanding_seconds
        if window.operations != 0 or window.stalled is False:
            continue
        last = stalls[-1] if stalls else None
        if last is not None and window.start - last.end <= (window.end - window.start) * GAP_TOLERANCE:
            known = [each for each in (last.oldest_seconds, age) if each is not None]
            stalls[-1] = Stall(last.start, window.end, last.windows + 1, max(known, default=None))
        else:
            stalls.append(Stall(window.start, window.end, 1, age))
    return stalls
