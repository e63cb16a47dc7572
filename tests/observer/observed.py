"""A system that others load, for tests: its operations and latencies on a port, as an exporter has them."""

import threading
import time
from types import TracebackType

from prometheus_client import CollectorRegistry, Counter, Histogram, start_http_server
from testkit.ports import free_port

SELECTOR = 'demo_request_latency_seconds{request="produce"}'
BOUNDS = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256)


class ObservedDemo:
    """Makes `rate` operations a second, each of `latency_seconds`, which may be changed meanwhile."""

    def __init__(self, rate: int = 200, latency_seconds: float = 0.003) -> None:
        self.port = free_port()
        self.latency_seconds = latency_seconds
        self.operations = 0
        self._period = 1 / rate
        registry = CollectorRegistry()
        self._latency = Histogram(
            "demo_request_latency_seconds", "Latency.", ["request"], buckets=BOUNDS, registry=registry
        ).labels("produce")
        self._bytes = Counter("demo_bytes", "Bytes.", registry=registry)
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

    def _work(self) -> None:
        due = time.monotonic()
        while not self._stopping.wait(max(0.0, due - time.monotonic())):
            due += self._period
            self._latency.observe(self.latency_seconds)
            self._bytes.inc(4096)
            self.operations += 1
