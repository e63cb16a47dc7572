"""TCP proxy on loopback that delays the answers of a server on this machine."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer

_CHUNK_BYTES = 1 << 16


@contextmanager
def slow_link(port: int, delay_seconds: float) -> Iterator[int]:
    """Start a proxy to `port`; yields its port on 127.0.0.1. Each answer, or part of one, is delayed."""

    class Link(BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", port)) as server:
                back = threading.Thread(target=_carry, args=(server, self.request, delay_seconds))
                back.start()
                _carry(self.request, server, 0.0)
                back.join()

    with ThreadingTCPServer(("127.0.0.1", 0), Link) as server:
        threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
        yield int(server.server_address[1])
        server.shutdown()


def _carry(source: socket.socket, sink: socket.socket, delay_seconds: float) -> None:
    """Copy from `source` to `sink`, each chunk delayed, until one of them ends; then shut down both."""
    with suppress(OSError):
        while data := source.recv(_CHUNK_BYTES):
            time.sleep(delay_seconds)
            sink.sendall(data)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
