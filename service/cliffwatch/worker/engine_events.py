"""How many of an engine's events go into the journal: an engine may report one for every operation."""

from collections import Counter

#: Of one name in one span.
EVENTS_LIMIT = 100
#: How long a span is, in seconds.
SPAN_SECONDS = 60.0


class EventLimit:
    """Lets so many events of a name pass in a span of time; counts the others, by name, until they are recorded."""

    def __init__(self) -> None:
        self._since = float("-inf")
        self._passed: Counter[str] = Counter()
        self._held_back: Counter[str] = Counter()

    def passes(self, name: str) -> bool:
        """Whether one more event of the name goes into the journal."""
        self._passed[name] += 1
        if self._passed[name] <= EVENTS_LIMIT:
            return True
        self._held_back[name] += 1
        return False

    def look(self, now: float) -> dict[str, int]:
        """What was held back in the span that is over, by name; empty while it lasts. `now` in seconds."""
        if now - self._since < SPAN_SECONDS:
            return {}
        return self.finish(now)

    def finish(self, now: float) -> dict[str, int]:
        """As `look`, of the span so far, which ends with that."""
        recorded = dict(self._held_back)
        self._since, self._passed, self._held_back = now, Counter(), Counter()
        return recorded
