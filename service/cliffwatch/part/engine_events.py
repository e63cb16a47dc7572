"""Rate limit of engine events in the journal: an engine may report one for every operation."""

from collections import Counter
from collections.abc import Mapping

from cliffwatch.base.finite_json import json_text

#: Most events of one name in one span.
EVENTS_LIMIT = 100
#: Most events of all names together in one span; the first event of a name may exceed this.
TOTAL_LIMIT = 500
#: Most names that are distinguished in one span.
NAMES_LIMIT = 100
#: Name under which suppressed events of further names are counted.
OTHERS = "others"
#: Longest detail that goes into the journal, as JSON. An account of 1,000 partitions with long names, which the verdict
#: of a run on brokers needs, takes half of it.
DETAIL_LIMIT_BYTES = 1024**2
#: Most bytes of details in one span, all events together.
SPAN_LIMIT_BYTES = 4 * DETAIL_LIMIT_BYTES
#: How long a span is, in seconds.
SPAN_SECONDS = 60.0


class EventLimit:
    """Rate limit on events, by number and size in a span of time; suppressed events are counted by name."""

    def __init__(self) -> None:
        self._since = float("-inf")
        self._passed: Counter[str] = Counter()
        self._passed_bytes = 0
        self._held_back: Counter[str] = Counter()

    def passes(self, name: str, detail: Mapping[str, object]) -> bool:
        """Whether another event of this name goes into the journal."""
        size_bytes = len(json_text(detail))
        if self._fits(name, size_bytes):
            self._passed[name] += 1
            self._passed_bytes += size_bytes
            return True
        is_known = name in self._held_back or len(self._held_back) < NAMES_LIMIT
        self._held_back[name if is_known else OTHERS] += 1
        return False

    def _fits(self, name: str, size_bytes: int) -> bool:
        if size_bytes > DETAIL_LIMIT_BYTES or self._passed_bytes + size_bytes > SPAN_LIMIT_BYTES:
            return False
        if name not in self._passed:
            return len(self._passed) < NAMES_LIMIT
        return self._passed[name] < EVENTS_LIMIT and self._passed.total() < TOTAL_LIMIT

    def look(self, now: float) -> dict[str, int]:
        """Number of suppressed events by name in the span that is over; empty while it lasts. `now` in seconds."""
        if now - self._since < SPAN_SECONDS:
            return {}
        return self.finish(now)

    def finish(self, now: float) -> dict[str, int]:
        """End the present span; returns the number of its suppressed events by name, as `look` does."""
        recorded = dict(self._held_back)
        self._since, self._passed, self._passed_bytes, self._held_back = now, Counter(), 0, Counter()
        return recorded
