"""Time in state of a run, by the monotonic clock.

Times in a journal are from a wall clock that may have been set since. The time of a state change is used once, when
this process first sees the run in the new state; from then on the monotonic clock counts.
"""

from collections.abc import Container, Hashable
from dataclasses import dataclass

from cliffwatch.base.clock import Clock


@dataclass(frozen=True, slots=True)
class _Sighting:
    """First observation of the state `what`, at monotonic time `at`; it had lasted for `before_seconds` then."""

    what: Hashable
    at: float
    before_seconds: float


class Sightings:
    """How long each aspect of each run, such as `state` or `losses`, has had its current value."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[tuple[str, str], _Sighting] = {}

    def seconds(self, run_id: str, aspect: str, what: Hashable, since: float | None = None) -> float:
        """Seconds for which a run's `aspect`, such as `state`, has had the value `what`.

        `since` is the time of that change by the wall clock; without it, only what this process observed counts.
        """
        seen = self._seen.get((run_id, aspect))
        if seen is None or seen.what != what:
            before = 0.0 if since is None else max(0.0, self._clock.wall() - since)
            seen = _Sighting(what, self._clock.monotonic(), before)
            self._seen[run_id, aspect] = seen
        return seen.before_seconds + self._clock.monotonic() - seen.at

    def keep_only(self, live: Container[str]) -> None:
        """Forget the runs that are over."""
        self._seen = {key: seen for key, seen in self._seen.items() if key[0] in live}
