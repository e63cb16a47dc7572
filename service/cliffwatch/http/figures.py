"""ASGI middleware: count and time requests by route template, and limit the size of request bodies."""

import time
from collections.abc import Collection, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.metrics_core import Metric
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cliffwatch.base.errors import Code, Problem
from cliffwatch.http.problems import ProblemResponse

BODY_LIMIT_BYTES = 1024 * 1024
#: This much of a body that is too large is read and discarded: a client that sends all of it first then receives the
#: answer, and not a connection reset.
DISCARDED_BYTES = 32 * 1024 * 1024
#: Upper bounds of the duration buckets, in seconds.
BUCKETS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
STATUS_CLASSES = ("2xx", "3xx", "4xx", "5xx")
#: Label of requests that no route answers: their path or method is unknown.
NO_ROUTE = "none"


class HttpFigures:
    """Requests by (method, route, class of status) and their durations by (method, route)."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._known: set[tuple[str, str]] = set()
        self._requests = Counter(
            "cliffwatch_service_http_requests",
            "Requests answered.",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._durations = Histogram(
            "cliffwatch_service_http_request_duration_seconds",
            "Time from a request's arrival to the end of its answer; of a live stream, to its end.",
            ["method", "route"],
            registry=self._registry,
            buckets=BUCKETS_SECONDS,
        )

    def know(self, routes: Iterable[tuple[str, str]]) -> None:
        """Initialise the metrics of every (method, route) at zero."""
        for method, route in {*routes, (NO_ROUTE, NO_ROUTE)}:
            self._known.add((method, route))
            self._durations.labels(method, route)
            for status_class in STATUS_CLASSES:
                self._requests.labels(method, route, status_class)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        if (method, route) not in self._known:
            # A method that a client makes up must not create a series.
            method = route = NO_ROUTE
        status_class = STATUS_CLASSES[max(0, min(len(STATUS_CLASSES) - 1, status // 100 - 2))]
        self._requests.labels(method, route, status_class).inc()
        self._durations.labels(method, route).observe(seconds)

    def collect(self) -> Iterator[Metric]:
        """Metrics of a scrape, without the creation time of each series."""
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric


class Measured:
    """ASGI middleware: counts each request under its route's template, so that run ids make no new series."""

    def __init__(self, app: ASGIApp, figures: HttpFigures) -> None:
        self._app = app
        self._figures = figures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            template = getattr(scope.get("route"), "path", NO_ROUTE)
            self._figures.count(scope["method"], template, status, time.perf_counter() - started)


class BodyLimit:
    """ASGI middleware: read the whole body of a request, up to the limit, before anything else processes the request.

    Routes at the paths of `streamed` read and limit their bodies themselves.
    """

    def __init__(
        self, app: ASGIApp, limit_bytes: int = BODY_LIMIT_BYTES, streamed: Collection[str] = frozenset()
    ) -> None:
        self._app = app
        self._limit_bytes = limit_bytes
        self._streamed = frozenset(streamed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_taken_whole = scope["type"] == "http" and scope["method"] not in {"GET", "HEAD", "OPTIONS"}
        if not is_taken_whole or scope["path"] in self._streamed:
            await self._app(scope, receive, send)
            return
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                # The client is gone; the answer only counts the request as the client's error, not the service's.
                problem = Problem(Code.BAD_REQUEST, "the request ended before its body did")
                await ProblemResponse(problem, scope["path"])(scope, receive, send)
                return
            body += message.get("body", b"")
            if len(body) > self._limit_bytes:
                problem = Problem(Code.BODY_TOO_LARGE, f"the body is larger than {self._limit_bytes} bytes")
                response = ProblemResponse(problem, scope["path"], {"Connection": "close"})
                await response(scope, receive, _UntilItsEnd(send, receive, message))
                return
            if not message.get("more_body", False):
                break
        whole: Message | None = {"type": "http.request", "body": bytes(body), "more_body": False}

        async def replay() -> Message:
            nonlocal whole
            if whole is not None:
                message, whole = whole, None
                return message
            return await receive()

        await self._app(scope, replay, send)


class _UntilItsEnd:
    """ASGI `send` that begins the response at once, and ends it once the rest of the request's body is discarded."""

    def __init__(self, send: Send, receive: Receive, last: Message) -> None:
        self._send = send
        self._receive = receive
        self._last = last

    async def __call__(self, message: Message) -> None:
        if message["type"] != "http.response.body":
            await self._send(message)
            return
        await self._send({**message, "more_body": True})
        received, discarded_bytes = self._last, 0
        while received.get("more_body", False) and discarded_bytes < DISCARDED_BYTES:
            received = await self._receive()
            discarded_bytes += len(received.get("body", b""))
        await self._send({"type": "http.response.body"})
