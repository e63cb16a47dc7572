"""Restart policy for workers: pause before an interrupted run gets a new one, and when to give up. Pure functions.

Time decides, not a count: a full disk kills ten workers within seconds, and an hour later it may have room again. Only
time that was really waited counts, since the wall clock may have been set between two deaths.
A restarted service continues from the journal: the pauses that lie between the recorded deaths count.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from cliffwatch.base.retries import growing_pause_seconds
from cliffwatch.journal.events import Event, EventType, ends_load
from cliffwatch.model.run_state import RunState

#: The first worker that dies is replaced at once. From the second death in a row without a new window on, there is a
#: pause: the first of this length, then doubled each time, up to the longest.
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
#: Longest pause of a run that is being stopped, which only needs its report.
LONGEST_PAUSE_WHEN_STOPPING_SECONDS = 5.0
#: A run is given up after this long without a new window, but not before this many workers have died.
GIVE_UP_SECONDS = 1800.0
LEAST_WORKERS = 5
#: Key in the detail of the event that ends the load, when the service wrote it because it gave the run up.
GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class Losses:
    """Consecutive deaths of an interrupted run's workers without a new window.

    `last_at`: when the last death was noticed, in seconds since the epoch. `paused_seconds`: pauses between the deaths.
    `ended`: the load was over when they died, and only the report was missing. `given_up`: the service had ended the
    load by giving the run up.
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
        """Remaining seconds of the pause, when `waited_seconds` have passed since the last death."""
        pause = self.pause_seconds
        if stopping:
            pause = min(pause, LONGEST_PAUSE_WHEN_STOPPING_SECONDS)
        return max(0.0, pause - waited_seconds)

    def is_exhausted(self, watched_seconds: float) -> bool:
        """Whether to stop retrying: enough deaths over a long enough time (`watched_seconds`, or their pauses).

        Once the run was given up only their number counts: its report gets a few attempts.
        """
        if self.count < LEAST_WORKERS:
            return False
        return self.given_up or max(watched_seconds, self.paused_seconds) >= GIVE_UP_SECONDS


def losses_of(events: Iterable[Event], windows: int) -> Losses:
    """Deaths of workers while the journal had `windows` windows; once the load is over, only the deaths since then."""
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
    """Seconds certainly waited: of each interval between two deaths, at most the pause due after the first death."""
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
