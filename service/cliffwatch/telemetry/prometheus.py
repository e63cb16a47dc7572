"""Prometheus client with timeouts, size limits and validation."""

import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray

from cliffwatch.base.finite_json import lenient_json
from cliffwatch.base.http_client import http_client
from cliffwatch.telemetry.address import PrometheusAddress, secret_in
from cliffwatch.telemetry.native_histograms import BOUND_LABEL, cumulative_buckets

#: Prometheus itself refuses to answer with more points than this for one series.
POINT_LIMIT = 11_000
#: An answer longer than this is not read to its end.
ANSWER_LIMIT_BYTES = 64 << 20
_REQUEST_SECONDS = 10.0
_WORDS = 300


class QueryFailed(Exception):
    """Prometheus did not give an answer that can be used; the message says why."""


@dataclass(frozen=True, slots=True)
class PrometheusAnswer:
    """One labelled series: `times` (milliseconds since the epoch, rising) and `values`, of the same length. `name` is
    empty for a computed series. A native histogram is as many series as it has bounds, by the label `le`, as if it were
    a classic one."""

    labels: dict[str, str]
    times: NDArray[np.int64]
    values: NDArray[np.float64]
    name: str = ""


class Prometheus:
    """Client of the HTTP API of one Prometheus. No call takes longer than `deadline`, by the monotonic clock; it can be
    changed between calls."""

    def __init__(self, server: PrometheusAddress, deadline: float) -> None:
        """Prepare the client. Raises QueryFailed for an address that is no HTTP URL, or an unreadable secret."""
        self.deadline = deadline
        self._url = server.url
        self._client = _client_of(server)

    def close(self) -> None:
        self._client.close()

    def major_version(self) -> int:
        """Major version of the server, which also checks that it is a Prometheus. Raises QueryFailed."""
        data = self._ask("GET", "api/v1/status/buildinfo", {})
        try:
            return int(str(data["version"]).split(".")[0])
        except (KeyError, TypeError, ValueError) as error:
            raise QueryFailed(f"what answers at {self._url} is not Prometheus: it has no version") from error

    def now(self) -> float:
        """Time of the server's clock, in seconds since the epoch. Raises QueryFailed."""
        data = self._ask("POST", "api/v1/query", {"query": "time()"})
        try:
            return float(data["result"][1])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise QueryFailed(f"Prometheus' answer makes no sense: {error!r}"[:_WORDS]) from error

    def query_range(self, query: str, start: int, end: int, step: int) -> list[PrometheusAnswer]:
        """Evaluate `query` at start, start + step, … end, in milliseconds. Raises QueryFailed."""
        assert (end - start) // step < POINT_LIMIT, "the caller asks for less at a time"
        form = {
            "query": query,
            "start": f"{start / 1000:.3f}",
            "end": f"{end / 1000:.3f}",
            "step": f"{step / 1000:.3f}",
            "timeout": f"{_REQUEST_SECONDS:g}s",
        }
        return _matrix(self._ask("POST", "api/v1/query_range", form), start, end)

    def query(self, query: str, wall_seconds: float) -> list[PrometheusAnswer]:
        """Evaluate `query`, an instant vector, at one moment. Raises QueryFailed."""
        moment = round(wall_seconds * 1000)
        return self.query_range(query, moment, moment, 1000)

    def query_samples(self, query: str, until: float) -> list[PrometheusAnswer]:
        """Raw samples, as scraped, of `query`, a range vector such as `up[5m]`, whose range ends at `until`.

        Raises QueryFailed.
        """
        form = {"query": query, "time": f"{until:.3f}", "timeout": f"{_REQUEST_SECONDS:g}s"}
        return _matrix(self._ask("POST", "api/v1/query", form), 0, round(until * 1000))

    def _ask(self, method: str, path: str, form: dict[str, str]) -> Any:
        try:
            seconds = max(0.1, min(_REQUEST_SECONDS, self.deadline - time.monotonic()))
            with self._client.stream(method, path, data=form or None, timeout=seconds) as response:
                content = _content(response)
                status = response.status_code
        except (httpx.HTTPError, httpx.StreamError) as error:
            words = str(error) or type(error).__name__
            raise QueryFailed(f"Prometheus at {self._url} does not answer: {words}"[:_WORDS]) from error
        if status in (401, 403):
            raise QueryFailed(f"Prometheus at {self._url} does not accept who asks ({status}): look at its credentials")
        try:
            body, _ = lenient_json(content)
            if body["status"] == "success":
                return body["data"]
            words = str(body["error"])
        except (ValueError, KeyError, TypeError) as error:
            raise QueryFailed(f"what answers at {self._url} is not Prometheus, or not ready ({status})") from error
        raise QueryFailed(f"Prometheus refused: {words}"[:_WORDS])


def _content(response: httpx.Response) -> bytes:
    """Body of a response. Raises QueryFailed if it is too long."""
    content = bytearray()
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > ANSWER_LIMIT_BYTES:
            raise QueryFailed(f"Prometheus' answer is longer than {ANSWER_LIMIT_BYTES >> 20} MiB")
    return bytes(content)


def _client_of(server: PrometheusAddress) -> httpx.Client:
    headers: dict[str, str] = {}
    auth: tuple[str, str] | None = None
    try:
        if server.bearer_token_file is not None:
            headers["Authorization"] = f"Bearer {secret_in(server.bearer_token_file)}"
        if server.username is not None and server.password_file is not None:
            auth = server.username, secret_in(server.password_file)
        # Without TLS, skip reading the machine's certificates, which takes longer than a query.
        is_plain = httpx.URL(server.url).scheme == "http"
        tls = None if is_plain else ssl.create_default_context(cafile=server.ca_file)
        client = http_client(_REQUEST_SECONDS, server.url, headers, auth, tls)
    except httpx.InvalidURL as error:
        raise QueryFailed(f"{server.url!r} is not a URL: {error}") from error
    except (OSError, UnicodeError) as error:
        which = getattr(error, "filename", None) or server.ca_file or "a file of its credentials"
        words = getattr(error, "strerror", None) or str(error)
        raise QueryFailed(f"Prometheus at {server.url} cannot be asked: {which}: {words}"[:_WORDS]) from error
    if client.base_url.scheme not in {"http", "https"}:
        client.close()
        raise QueryFailed(f"{server.url!r} is not a URL of Prometheus; it begins with http:// or https://")
    return client


def _matrix(data: Any, start: int, end: int) -> list[PrometheusAnswer]:
    try:
        if data["resultType"] != "matrix":
            raise ValueError(f"a {data['resultType']} instead of a matrix")
        return [answer for item in data["result"] for answer in _answers(item, start, end)]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise QueryFailed(f"Prometheus' answer makes no sense: {error!r}"[:_WORDS]) from error


def _answers(item: dict[str, Any], start: int, end: int) -> Iterator[PrometheusAnswer]:
    """A series as it is; one of native histograms as a series for each bucket, with the label `le`."""
    labels = {str(name): str(value) for name, value in item["metric"].items() if name != "__name__"}
    name = str(item["metric"].get("__name__", ""))
    if (samples := item.get("histograms")) is not None:
        times = _times(samples, start, end)
        for bound, counts in cumulative_buckets([sample for _, sample in samples]).items():
            yield PrometheusAnswer(labels | {BOUND_LABEL: bound}, times, counts, name)
    if samples is None or "values" in item:
        values = np.array([float(value) for _, value in item["values"]], dtype=np.float64)
        yield PrometheusAnswer(labels, _times(item["values"], start, end), values, name)


def _times(samples: list[Any], start: int, end: int) -> NDArray[np.int64]:
    times = np.array([round(moment * 1000) for moment, _ in samples], dtype=np.int64)
    if len(times) and not (start <= times[0] and times[-1] <= end and (np.diff(times) > 0).all()):
        raise ValueError("times that were not asked for")
    return times
