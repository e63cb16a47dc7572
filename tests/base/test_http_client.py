"""Requests to servers that answer as slowly as they like: each ends within its time limit."""

import random
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from cliffwatch.base.http_client import http_client

SECONDS = 0.4
#: For the machine, which may be busy; a request without a limit would take as long as the server drips.
MARGIN_SECONDS = 2.0
HEAD = b"HTTP/1.1 200 OK\r\n"
#: What a server sends before it drips, and what it drips, one byte at a time or whole.
PLACES: dict[str, tuple[bytes, bytes]] = {
    "nothing": (b"", b""),
    "status": (b"", b"HTTP/1.1 200 " + b"OK" * 1000),
    "headers": (HEAD, b"X-More: more\r\n" * 1000),
    "body": (HEAD + b"Content-Length: 100000\r\n\r\n", b" " * 1000),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n" * 1000),
    "body without a length": (HEAD + b"\r\n", b" " * 1000),
    "informational": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
}


@contextmanager
def serving(serve: Callable[[socket.socket, threading.Event], None]) -> Iterator[int]:
    """A server that handles each connection by `serve`, until the event is set; yields its port."""
    over, threads = threading.Event(), []
    listener = socket.create_server(("127.0.0.1", 0))

    def one(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            serve(connection, over)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threads.append(threading.Thread(target=one, args=(listener.accept()[0],)))
                threads[-1].start()

    acceptor = threading.Thread(target=accept)
    acceptor.start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in (acceptor, *threads):
            thread.join()


def assert_ends_in_time(client: httpx.Client, url: str, **request: bytes) -> None:
    begun = time.monotonic()
    with pytest.raises(httpx.TransportError):
        client.post(url, **request)  # type: ignore[arg-type]
    assert time.monotonic() - begun < SECONDS + MARGIN_SECONDS


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.real(why="servers that drip, at random paces")
def test_a_server_that_drips_is_given_up_in_time(place: str, seed: int) -> None:
    before, dripped = PLACES[place]
    chance = random.Random(seed)
    block = chance.choice((1, 1, 5, 40))

    def drip(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(before)
        at = 0
        while not over.wait(chance.uniform(0.01, SECONDS * 0.9)):
            connection.sendall(dripped[at : at + block])
            at += block

    with serving(drip) as port, http_client(SECONDS) as client:
        for _ in range(2):
            assert_ends_in_time(client, f"http://127.0.0.1:{port}/")


def test_dripped_headers_end_a_request_in_time() -> None:
    def drip(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(HEAD)
        while not over.wait(SECONDS / 4):
            connection.sendall(b"X-More: more\r\n")

    with serving(drip) as port, http_client(SECONDS) as client:
        assert_ends_in_time(client, f"http://127.0.0.1:{port}/")


def test_a_server_that_reads_nothing_is_given_up_in_time() -> None:
    def sip(connection: socket.socket, over: threading.Event) -> None:
        while not over.wait(SECONDS / 4):
            connection.recv(1)

    with serving(sip) as port, http_client(SECONDS) as client:
        assert_ends_in_time(client, f"http://127.0.0.1:{port}/", content=bytes(64 << 20))


def test_a_tls_handshake_that_drips_is_given_up_in_time() -> None:
    def drip(connection: socket.socket, over: threading.Event) -> None:
        record = bytes([22, 3, 3, 0x40, 0]) + bytes(0x4000)
        for byte in record:
            if over.wait(SECONDS / 4):
                break
            connection.sendall(bytes([byte]))

    with serving(drip) as port, http_client(SECONDS, tls=ssl.create_default_context()) as client:
        assert_ends_in_time(client, f"https://127.0.0.1:{port}/")


def test_a_name_that_is_looked_up_for_ever_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait() and [])
    with http_client(SECONDS) as client:
        assert_ends_in_time(client, "http://slow.invalid/")
    over.set()


class _Greeting(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  its name in http.server
        pass


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_a_server_that_answers_is_understood_again_and_again(tmp_path: Path, is_encrypted: bool) -> None:
    server, context = ThreadingHTTPServer(("127.0.0.1", 0), _Greeting), None
    if is_encrypted:
        key, certificate = tmp_path / "key", tmp_path / "certificate"
        request = ["-x509", "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
        subprocess.run(
            ["openssl", "req", *request, "-newkey", "rsa:2048", "-keyout", key, "-out", certificate],
            check=True,
            capture_output=True,
        )
        own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        own.load_cert_chain(certificate, key)
        server.socket = own.wrap_socket(server.socket, server_side=True)
        context = ssl.create_default_context(cafile=str(certificate))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        url = f"http{'s' if is_encrypted else ''}://localhost:{server.server_port}"
        with http_client(30.0, url, tls=context) as client:
            assert [client.get("/").text for _ in range(3)] == ["hello"] * 3
            # A request's own limit counts, too, on a connection that is open already.
            with pytest.raises(httpx.TimeoutException, match="no whole answer within"):
                client.get("/", timeout=0.0)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
