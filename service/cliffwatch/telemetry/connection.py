"""Connection to a Prometheus that is queried again and again."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from cliffwatch.telemetry.address import PrometheusAddress
from cliffwatch.telemetry.prometheus import Prometheus, QueryFailed


class PrometheusConnection:
    """Connection that stays open between queries. A failed query closes it: the next one reads the files with the
    server's secrets again."""

    def __init__(self, server: PrometheusAddress, patience_seconds: float) -> None:
        """`patience_seconds`: time limit of each `connected`, all its queries together."""
        self._server, self._patience_seconds = server, patience_seconds
        self._prometheus: Prometheus | None = None

    @contextmanager
    def connected(self) -> Iterator[Prometheus]:
        """Connect, if that is not done, and query within the time limit. Raises QueryFailed."""
        if self._prometheus is None:
            self._prometheus = Prometheus(self._server, 0.0)
        self._prometheus.deadline = time.monotonic() + self._patience_seconds
        try:
            yield self._prometheus
        except QueryFailed:
            self.close()
            raise

    def close(self) -> None:
        if self._prometheus is not None:
            self._prometheus.close()
            self._prometheus = None
