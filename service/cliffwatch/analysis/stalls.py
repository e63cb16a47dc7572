"""Stalls: windows in which nothing was completed although something was due. They were measured, and are not gaps."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cliffwatch.analysis.coverage import GAP_TOLERANCE
from cliffwatch.base.histogram import Histogram
from cliffwatch.base.units import format_latency
from cliffwatch.journal.windows import JournalWindow
from cliffwatch.model.limits import Limit
from cliffwatch.model.window import OLDEST_OUTSTANDING


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


def stall_seconds(counters: Mapping[str, int], gauges: Mapping[str, float], seconds: float) -> float | None:
    """How old the oldest operation was where a window of so many measured seconds completed nothing.

    0 where that is not known; None for a window that is no stall.
    """
    age = gauges.get(OLDEST_OUTSTANDING)
    if counters.get("operations", 0) != 0 or (age is not None and age < seconds / 2):
        return None
    return age or 0.0


def stall_of(window: JournalWindow) -> float | None:
    """The same of a journal's window."""
    return stall_seconds(window.counters, window.gauges, window.seconds)


def stall_words(oldest_seconds: float) -> str:
    """What is said of a stall in the place of a latency."""
    return (
        f"stalled, oldest operation due for {format_latency(oldest_seconds)}" if oldest_seconds else "nothing completed"
    )


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
