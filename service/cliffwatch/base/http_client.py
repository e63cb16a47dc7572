"""HTTP client for other servers, with one time limit for each whole request.

The timeouts of httpx are for each read, so it waits without end for a server that sends a byte now and then. Here the
time limit counts from the call to the last byte of the response, with name lookup, connection, TLS, headers and body.
"""

import socket
import ssl
import threading
import time
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx
from httpcore._backends.sync import SyncBackend

_BLOCK_BYTES = 1 << 16


def http_client(
    seconds: float,
    base_url: str = "",
    headers: dict[str, str] | None = None,
    auth: tuple[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> httpx.Client:
    """Client whose requests take `seconds` at most, unless a request has another `timeout`; one thread at a time.

    It ignores the machine's proxies, which are for outside hosts. Without `tls`, certificates are not verified. Raises
    httpx.InvalidURL.
    """
    transport = _Transport(verify=tls or False, trust_env=False)
    # Not the machine's certificates either, whose reading takes longer than a request.
    return httpx.Client(
        base_url=base_url, headers=headers, auth=auth, timeout=seconds, transport=transport, trust_env=False
    )


class _Transport(httpx.HTTPTransport):
    """Transport that takes the `timeout` of a request as the time limit of the whole of it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._limit = _Limit()
        self._pool._network_backend = _Backend(self._limit)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._limit.begin(request.extensions["timeout"]["read"])
        return super().handle_request(request)


class _Limit(threading.local):
    """Time limit of the request that this thread makes; its response is read by the same thread."""

    seconds = ends_at = float("inf")

    def begin(self, seconds: float) -> None:
        self.seconds, self.ends_at = seconds, time.monotonic() + seconds

    def left(self, timed_out: type[httpcore.TimeoutException]) -> float:
        """Seconds left. Raises `timed_out` when there are none."""
        left = self.ends_at - time.monotonic()
        if left <= 0:
            raise self.exceeded(timed_out)
        return left

    def exceeded(self, timed_out: type[httpcore.TimeoutException]) -> httpcore.TimeoutException:
        return timed_out(f"no whole answer within {self.seconds:.3g} s")


class _Backend(SyncBackend):
    def __init__(self, limit: _Limit) -> None:
        self._limit = limit

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        error: Exception | None = None
        for address in self._addresses(host, port):
            try:
                left = self._limit.left(httpcore.ConnectTimeout)
                return _Stream(super().connect_tcp(address, port, left, local_address, socket_options), self._limit)
            except httpcore.ConnectError as refused:
                error = refused
        raise error or httpcore.ConnectError(f"{host} has no address")

    def _addresses(self, host: str, port: int) -> list[str]:
        """Addresses of a host. The resolver has time limits of its own, so a thread asks it, which may be left."""
        found: list[str] = []
        failed: list[OSError | UnicodeError] = []

        def ask() -> None:
            try:
                answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                found.extend(dict.fromkeys(str(address[0]) for *_, address in answers))
            except (OSError, UnicodeError) as error:
                failed.append(error)

        thread = threading.Thread(target=ask, name="resolver", daemon=True)
        thread.start()
        thread.join(self._limit.left(httpcore.ConnectTimeout))
        if failed:
            raise httpcore.ConnectError(str(failed[0])) from failed[0]
        self._limit.left(httpcore.ConnectTimeout)
        return found


class _Stream(httpcore.NetworkStream):
    """Connection whose every wait ends with the time limit of the request."""

    def __init__(self, stream: httpcore.NetworkStream, limit: _Limit) -> None:
        self._stream, self._limit = stream, limit

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        left = self._limit.left(httpcore.ReadTimeout)
        try:
            return self._stream.read(max_bytes, left)
        except httpcore.ReadTimeout as error:
            raise self._limit.exceeded(httpcore.ReadTimeout) from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        connection: socket.socket = self._stream.get_extra_info("socket")
        while buffer:
            connection.settimeout(self._limit.left(httpcore.WriteTimeout))
            try:
                sent = connection.send(buffer[:_BLOCK_BYTES])
            except TimeoutError as error:
                raise self._limit.exceeded(httpcore.WriteTimeout) from error
            except OSError as error:
                raise httpcore.WriteError(str(error)) from error
            buffer = buffer[sent:]

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = self._limit.left(httpcore.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, left), self._limit)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
