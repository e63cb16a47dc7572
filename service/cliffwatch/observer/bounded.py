"""Queries of a Prometheus that belongs to others: one at a time, of a bounded number and size, with pauses after one
that failed."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from cliffwatch.telemetry.prometheus import Prometheus, PrometheusAnswer, QueryFailed

#: Most queries of one look back, and most samples that one of them makes Prometheus read.
QUERIES_LIMIT, SAMPLES_LIMIT = 2000, 50_000
#: Pauses before a failed query is repeated, in seconds; it has failed when they are used up.
_PAUSES = (1.0, 5.0, 20.0)
_PATIENCE_SECONDS = 30.0


@dataclass(slots=True)
class BoundedQueries:
    """Client of one Prometheus. `asked`: number of queries so far; `wait` is called with the seconds of a pause."""

    prometheus: Prometheus
    wait: Callable[[float], None] = time.sleep
    asked: int = field(default=0)

    def query_range(self, query: str, start: int, end: int, step: int) -> list[PrometheusAnswer]:
        """Evaluate `query` at start, start + step, … end, in milliseconds. Raises QueryFailed."""
        for pause in (*_PAUSES, None):
            if self.asked >= QUERIES_LIMIT:
                raise QueryFailed(f"it was asked {QUERIES_LIMIT:,} queries, which is the limit; look back less far")
            self.asked += 1
            self.prometheus.deadline = time.monotonic() + _PATIENCE_SECONDS
            try:
                return self.prometheus.query_range(query, start, end, step)
            except QueryFailed:
                if pause is None:
                    raise
                self.wait(pause)
        raise AssertionError("the last attempt returns or raises")
