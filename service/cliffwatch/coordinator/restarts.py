"""Restart policy for workers: pause before an interrupted run gets another one, and when to give up. Pure functions.

Time decides and not a count: ten workers die within seconds of a disk that is full, and an hour later it may be free
again. It is time that was waited: the wall clock may have been set between two deaths.
A service that was started anew goes on where the last one stood, with the pauses that lie between the deaths.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from cliffwatch.base.retries import growing_pause_seconds
from cliffwatch.journal.events import Event, EventType, ends_load
from cliffwatch.model.run_state import RunState

#: The first worker that dies is replaced at once. From the second in a row without a new window on there is a pause: so
#: long, then twice as long each time, at most so long.
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
#: A run that is being stopped only needs its report.
LONGEST_PAUSE_WHEN_STOPPING_SECONDS = 5.0
#: A run is given up when it had no new window for so long, and not before so many workers have tried.
GIVE_UP_SECONDS = 1800.0
LEAST_WORKERS = 5
#: How the load's end stands in the journal when the service, and not a worker, wrote it.
GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class Losses:
    """Consecutive deaths of an interrupted run's workers without a new window.

    `last_at` is when the last of them was missed, in seconds since the epoch; `paused_seconds` of pauses lie between
    them. `ended`: the load was over when they died, and only the report was left; `given_up`: because the service had
    said so.
    """

    count: int
    last_at: float
    paused_seconds: float
    ended: bool = False
    given_up: bool = False

    @property
    def pause_seconds(self) -> float:
        """Pause from the last death until the next worker is started."""
        return _pause_seconds(self.count)

    def wait_seconds(self, waited_seconds: float, stopping: bool = False) -> float:
        """Rest of the pause, given the seconds waited since the last death."""
        pause = self.pause_seconds
        if stopping:
            pause = min(pause, LONGEST_PAUSE_WHEN_STOPPING_SECONDS)
        return max(0.0, pause - waited_seconds)

    def is_exhausted(self, watched_seconds: float) -> bool:
        """Whether to stop trying, when the service has known of these deaths for `watched_seconds`.

        A run that was given up has had its time: its report is tried a few times more.
        """
        if self.count < LEAST_WORKERS:
            return False
        return self.given_up or max(watched_seconds, self.paused_seconds) >= GIVE_UP_SECONDS


def losses_of(events: Iterable[Event], windows: int) -> Losses:
    """The workers that died with `windows` windows in the journal; of a load that is over, those that died since."""
    died: list[float] = []
    ended = given_up = False
    for event in events:
        if ends_load(event):
            died, ended, given_up = [], True, bool(event.detail.get(GIVEN_UP))
        elif _is_death(event) and event.detail.get("windows") == windows:
            died.append(event.at)
    if not died:
        return Losses(0, 0.0, 0.0, ended, given_up)
    return Losses(len(died), died[-1], _paused_seconds(died), ended, given_up)


def _paused_seconds(died: list[float]) -> float:
    """Time that is known to have been waited: between two deaths at most the pause after the first of them."""
    return sum(
        min(max(0.0, later - earlier), _pause_seconds(count))
        for count, (earlier, later) in enumerate(pairwise(died), start=1)
    )


def _pause_seconds(deaths: int) -> float:
    if deaths <= 1:
        return 0.0
    return growing_pause_seconds(deaths - 1, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)


def _is_death(event: Event) -> bool:
    return event.type is EventType.STATE and event.name == RunState.INTERRUPTED.value
