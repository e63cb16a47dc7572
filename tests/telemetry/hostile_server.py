"""Servers that stand where Prometheus should be, and what they do instead of answering."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

Behaviour = Callable[[socket.socket, threading.Event], None]
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def hang(connection: socket.socket, over: threading.Event) -> None:
    """Take the question and never answer."""
    over.wait()


def drip(connection: socket.socket, over: threading.Event) -> None:
    """Answer one byte at a time, for ever: no single read takes long."""
    connection.sendall(_HEAD + b"Content-Length: 100000000\r\n\r\n")
    while not over.wait(0.05):
        connection.sendall(b" ")


def drip_head(connection: socket.socket, over: threading.Event) -> None:
    """Answer with one header after the other, for ever."""
    connection.sendall(_HEAD)
    while not over.wait(0.05):
        connection.sendall(b"X-More: more\r\n")


def garbage(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(bytes(range(256)) * 16)


def slam(connection: socket.socket, over: threading.Event) -> None:
    """Close without a word."""


def another_server(connection: socket.socket, over: threading.Event) -> None:
    """A web server, but not Prometheus."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n<html>Hi</html>")


def not_ready(connection: socket.socket, over: threading.Event) -> None:
    """What Prometheus says while it replays its log."""
    connection.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 19\r\n\r\nService Unavailable")


def huge(connection: socket.socket, over: threading.Event) -> None:
    """Answer without end, as fast as it is read."""
    connection.sendall(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    block = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
    while not over.is_set():
        connection.sendall(block)


def lie(connection: socket.socket, over: threading.Event) -> None:
    """Have the version of Prometheus, and samples of a time that was not asked for."""
    body = (
        b'{"status":"success","data":{"version":"2.42.0","resultType":"matrix",'
        b'"result":[{"metric":{"__name__":"x"},"values":[[1,"1"],[0,"NaN"]]}]}}'
    )
    connection.sendall(_HEAD + f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


class HostileServer:
    """Listens on a port of its own, or on `port`, and behaves the same towards everybody."""

    def __init__(self, behaviour: Behaviour, port: int = 0) -> None:
        self._behaviour = behaviour
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", port))
        self._threads = [threading.Thread(target=self._accept)]
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> "HostileServer":
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                thread = threading.Thread(target=self._serve, args=(connection,))
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65_536)
            self._behaviour(connection, self._over)
