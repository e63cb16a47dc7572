"""HTTP client of the API for the command line: JSON in, JSON out; an error response raises `Problem`."""

import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, Self
from urllib.parse import quote

import httpx

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.http_client import http_client

API_PREFIX = "/api/v1"
_TIMEOUT = httpx.Timeout(30.0, connect=5.0)
#: The service sends a comment every 15 s on a stream where nothing happens; silence for longer means it is gone.
STREAM_SILENCE_SECONDS = 45.0
#: Read timeout of an upload: the service checks a bundle and makes its report before it answers.
_UPLOAD_TIMEOUT = httpx.Timeout(60.0, connect=5.0, read=1800.0)
#: Read timeout of a download: a report's picture is drawn when it is first requested.
_CONTENT_TIMEOUT = httpx.Timeout(30.0, connect=5.0, read=330.0)
#: Read timeout of making a report: of a 36 h run half a minute on an idle machine, after the reports before it.
_MAKING_TIMEOUT = httpx.Timeout(30.0, connect=5.0, read=1300.0)
_PIECE_BYTES = 1024 * 1024
_PAGE_SIZE = 100
_READY_TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One server-sent event. `name` is empty for a comment, which only shows that the service is alive."""

    name: str
    data: str
    id: str


class ApiClient:
    """A client of one service with one token."""

    def __init__(self, url: str, token: str | None, transport: httpx.BaseTransport | None = None) -> None:
        """`transport` is used instead of the network. Raises Problem(bad_request) when `url` is not a URL."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.url = url.rstrip("/")
        # Ignore proxies of the environment: the service is on this machine or a known host. Without TLS no certificate
        # is verified, and loading the system's certificates would take a tenth of a command's time.
        try:
            self._http = httpx.Client(
                base_url=self.url,
                headers=headers,
                timeout=_TIMEOUT,
                transport=transport,
                trust_env=False,
                verify=not self.url.startswith("http://"),
            )
        except httpx.InvalidURL as error:
            raise Problem(Code.BAD_REQUEST, f"--url: {url!r} is no URL ({error}); give http://HOST:PORT") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, path: str, **query: Any) -> Any:
        return self._json("GET", path, params=_given(query))

    def post(self, path: str, body: Any = None, **query: Any) -> Any:
        return self._json("POST", path, params=_given(query), json={} if body is None else body)

    def make(self, path: str) -> Any:
        """POST with a long timeout, for requests that may take minutes, such as making a report; returns the JSON."""
        return self._json("POST", path, timeout=_MAKING_TIMEOUT)

    def put(self, path: str, body: Any) -> Any:
        return self._json("PUT", path, json=body)

    def patch(self, path: str, body: Any) -> Any:
        return self._json("PATCH", path, json=body)

    def delete(self, path: str) -> None:
        self._request("DELETE", path)

    def get_bytes(self, path: str) -> bytes:
        return self._request("GET", path, timeout=_CONTENT_TIMEOUT).content

    def upload(self, path: str, content: BinaryIO) -> Any:
        """POST a zstd file in pieces, with a timeout that covers the time that the service needs to process it."""
        headers = {"Content-Type": "application/zstd"}
        return self._json("POST", path, content=_pieces(content), headers=headers, timeout=_UPLOAD_TIMEOUT)

    def list_all(self, path: str, limit: int | None = None, **query: Any) -> list[dict[str, Any]]:
        """The items of a paginated list, at most `limit`."""
        items: list[dict[str, Any]] = []
        page: str | None = None
        while True:
            wanted = _PAGE_SIZE if limit is None else min(_PAGE_SIZE, limit - len(items))
            body = self.get(path, **query, limit=wanted, page=page)
            items += body["items"]
            page = body.get("next_page")
            if page is None or (limit is not None and len(items) >= limit):
                return items[:limit]

    def is_ready(self) -> bool:
        """Whether the service answers and reports that it is ready."""
        try:
            return self._ready().is_success
        except httpx.HTTPError:
            return False

    def why_not_ready(self) -> str | None:
        """Reason why the service is not ready; None when it is ready or does not answer."""
        try:
            answer = self._ready()
        except httpx.HTTPError:
            return None
        return None if answer.is_success else problem_of(answer).detail

    def _ready(self) -> httpx.Response:
        """Response of /readyz, within a limit for the whole of it: something else may listen at the address."""
        tls = None if self.url.startswith("http://") else ssl.create_default_context()
        with http_client(_READY_TIMEOUT_SECONDS, self.url, tls=tls) as client:
            return client.get("/readyz")

    @contextmanager
    def events(self, path: str, last_event_id: str | None) -> Iterator[Iterator[ServerEvent]]:
        """Stream server-sent events that follow `last_event_id`. Raises Problem, also while the events are read."""
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last_event_id} if last_event_id else {})
        timeout = httpx.Timeout(_TIMEOUT.connect, read=STREAM_SILENCE_SECONDS)
        try:
            with self._http.stream("GET", API_PREFIX + path, headers=headers, timeout=timeout) as response:
                if not response.is_success:
                    response.read()
                    raise problem_of(response)
                if not response.headers.get("content-type", "").startswith("text/event-stream"):
                    raise Problem(Code.NOT_READY, f"{response.url} did not answer with an event stream")
                yield parse_events(response.iter_lines())
        except httpx.TransportError as error:
            raise self._unreachable(error) from error

    def _json(self, method: str, path: str, **request: Any) -> Any:
        response = self._request(method, path, **request)
        if not response.content:
            return None
        try:
            return response.json()
        except ValueError as error:
            detail = f"what answers at {self.url} is not a Cliffwatch service: it did not send JSON; see --url"
            raise Problem(Code.SERVICE_UNREACHABLE, detail) from error

    def _request(self, method: str, path: str, **request: Any) -> httpx.Response:
        try:
            response = self._http.request(method, API_PREFIX + path, **request)
        except httpx.TransportError as error:
            raise self._unreachable(error) from error
        if not response.is_success:
            raise problem_of(response)
        return response

    def _unreachable(self, error: httpx.TransportError) -> Problem:
        reason = str(error) or type(error).__name__
        return Problem(
            Code.SERVICE_UNREACHABLE,
            f"no service answers at {self.url} ({reason}); start it with `cliffwatch up`, or name another with --url",
        )


def path_of(*parts: str) -> str:
    """URL path of a resource; each part is percent-encoded, so that it stays one segment."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def problem_of(response: httpx.Response) -> Problem:
    """Problem from the body of an error response, or from its status when the body has none."""
    try:
        body = response.json()
        detail = str(body.get("detail") or body["title"])
        faults = [FieldFault(str(fault["field"]), str(fault["message"])) for fault in body.get("errors", [])]
        known = body.get("code")
    except (ValueError, KeyError, TypeError, AttributeError):
        detail = f"{response.request.method} {response.url} answered {response.status_code} {response.reason_phrase}"
        faults, known = [], None
    fallback = Code.INTERNAL if response.status_code >= 500 else Code.BAD_REQUEST
    return Problem(Code(known) if known in set(Code) else fallback, detail, faults)


@contextmanager
def named_by_flag(flags: Mapping[str, str]) -> Iterator[None]:
    """Name the faulty fields of a request by the flags that they were given with; `flags`: by field."""
    try:
        yield
    except Problem as problem:
        faults = [FieldFault(flags.get(fault.field, fault.field), fault.message) for fault in problem.faults]
        raise Problem(problem.code, problem.detail, faults) from problem


def parse_events(lines: Iterator[str]) -> Iterator[ServerEvent]:
    """Parse server-sent events (WHATWG HTML, section 9.2.6) from the lines of a stream.

    Comments are yielded too, unlike in libraries, which drop them: they show that a stream without events is alive.
    """
    name, last_id = "", ""
    data: list[str] = []
    for line in lines:
        if not line:
            if data:
                yield ServerEvent(name or "message", "\n".join(data), last_id)
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "":
            yield ServerEvent("", "", last_id)
        elif field == "event":
            name = value
        elif field == "data":
            data.append(value)
        elif field == "id":
            last_id = value


def json_of(event: ServerEvent) -> dict[str, Any]:
    """The event's data, parsed as a JSON object. Raises Problem when it is not one."""
    try:
        body = json.loads(event.data)
    except ValueError as error:
        raise Problem(Code.INTERNAL, f"the service sent an event that is not JSON: {event.data[:200]}") from error
    if not isinstance(body, dict):
        raise Problem(Code.INTERNAL, f"the service sent an event that is not a JSON object: {event.data[:200]}")
    return body


def _pieces(content: BinaryIO) -> Iterator[bytes]:
    while piece := content.read(_PIECE_BYTES):
        yield piece


def _given(query: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}
