"""A system that others load, for tests: its operations and latencies on a port, as an exporter has them."""

import threading
import time
from collections.abc import Iterator
from functools import partial
from types import TracebackType

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from testkit.ports import free_port
from testkit.storage_engine import Running

from cliffwatch.model.window import EngineWindow

SELECTOR = 'demo_request_latency_seconds{request="produce"}'
BOUNDS = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256)


class ObservedDemo:
    """Makes `rate` operations a second, each of `latency_seconds`, which may be changed meanwhile."""

    def __init__(self, rate: int = 200, latency_seconds: float = 0.003) -> None:
        self.port = free_port()
        self.latency_seconds = latency_seconds
        self.operations = 0
        #: Nothing is completed meanwhile, and the quantiles stay at their last values.
        self.is_standing_still = False
        self._period = 1 / rate
        registry = CollectorRegistry()
        self._latency = Histogram(
            "demo_request_latency_seconds", "Latency.", ["request"], buckets=BOUNDS, registry=registry
        ).labels("produce")
        self._bytes = Counter("demo_bytes", "Bytes.", registry=registry)
        self._errors = Counter("demo_errors", "Errors.", ["kind"], registry=registry)
        quantiles = Gauge("demo_totaltimems", "Latency, as a JMX exporter has it.", ["quantile"], registry=registry)
        for quantile, factor in (("0.5", 1.0), ("0.99", 3.0), ("0.999", 7.0)):
            quantiles.labels(quantile).set_function(partial(self._milliseconds, factor))
        self._server, self._serving = start_http_server(self.port, "127.0.0.1", registry)
        self._stopping = threading.Event()
        self._working = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> "ObservedDemo":
        self._working.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._stopping.set()
        self._working.join()
        self._server.shutdown()
        self._server.server_close()
        self._serving.join()

    def fail(self, operations: int) -> None:
        """Count failed operations; there is no counter of them before the first."""
        self._errors.labels("timeout").inc(operations)

    def _milliseconds(self, factor: float) -> float:
        return factor * self.latency_seconds * 1000

    def _work(self) -> None:
        due = time.monotonic()
        while not self._stopping.wait(max(0.0, due - time.monotonic())):
            due += self._period
            if self.is_standing_still:
                continue
            self._latency.observe(self.latency_seconds)
            self._bytes.inc(4096)
            self.operations += 1


class ObservedEngine(Collector):
    """A storage engine that no run started: its appends on a port, as an exporter of Prometheus has them."""

    BOUNDS = tuple(0.0001 * 1.5**power for power in range(32))

    def __init__(self) -> None:
        self.port = free_port()
        self._counts = [0] * (len(self.BOUNDS) + 1)
        self._seconds = 0.0
        registry = CollectorRegistry()
        registry.register(self)
        self._server, self._serving = start_http_server(self.port, "127.0.0.1", registry)

    def __enter__(self) -> "ObservedEngine":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._serving.join()

    def follow(self, engine: Running) -> None:
        """Count what an engine reports, until it ends, in a thread."""
        threading.Thread(target=self._count, args=(engine,), daemon=True).start()

    def collect(self) -> Iterator[Metric]:
        bounds = [*map(repr, self.BOUNDS), "+Inf"]
        yield HistogramMetricFamily(
            "engine_append_latency_seconds",
            "Latency of appends.",
            buckets=list(zip(bounds, list(self._counts), strict=True)),
            sum_value=self._seconds,
        )

    def _count(self, engine: Running) -> None:
        try:
            while True:
                window = engine.read_until("window")
                assert isinstance(window, EngineWindow)
                latency = window.latency.get("append")
                if latency is None:
                    # Nothing was completed.
                    continue
                counted = [*latency.cumulative_counts(self.BOUNDS), latency.count]
                self._seconds += latency.sum_seconds()
                self._counts = [before + more for before, more in zip(self._counts, counted, strict=True)]
        except (AssertionError, ValueError):
            # It has ended, or was killed.
            return
