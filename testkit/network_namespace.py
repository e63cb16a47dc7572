"""A network namespace as another host: reachable by an address of its own, and with a loopback of its own."""

import ctypes
import os
import queue
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer

_CLONE_NEWNET = 0x40000000
_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class OtherHost:
    """The namespace `name`, whose `address` is reached from here."""

    name: str
    address: str

    @property
    def prefix(self) -> tuple[str, ...]:
        """What a command is put behind to be run there; the process keeps its pid."""
        return ("nsenter", f"--net=/run/netns/{self.name}")

    def listen(self, port: int) -> socket.socket:
        """A socket that listens on the loopback there, for this process."""
        made: queue.SimpleQueue[socket.socket | OSError] = queue.SimpleQueue()
        # Only this thread enters the namespace; a socket stays in the one in which it was made.
        thread = threading.Thread(target=self._listen, args=(port, made))
        thread.start()
        thread.join()
        found = made.get()
        if isinstance(found, OSError):
            raise found
        return found

    def _listen(self, port: int, made: "queue.SimpleQueue[socket.socket | OSError]") -> None:
        try:
            with Path(f"/run/netns/{self.name}").open("rb") as namespace:
                if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            made.put(socket.create_server(("127.0.0.1", port)))
        except OSError as error:
            made.put(error)

    @contextmanager
    def forwarded(self, port: int) -> Iterator[None]:
        """Have a port of the loopback there lead to the same port of the loopback here."""

        class Link(BaseRequestHandler):
            def handle(self) -> None:
                with socket.create_connection(("127.0.0.1", port)) as server:
                    back = threading.Thread(target=_carry, args=(server, self.request))
                    back.start()
                    _carry(self.request, server)
                    back.join()

        with ThreadingTCPServer(("127.0.0.1", 0), Link, bind_and_activate=False) as server:
            server.socket.close()
            server.socket = self.listen(port)
            threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
            yield
            server.shutdown()


@contextmanager
def other_host() -> Iterator[OtherHost]:
    """Make a namespace with a link to it, until the block ends."""
    number = os.getpid()
    name, here, there = f"cliffwatch-{number}", f"cw{number}h", f"cw{number}t"
    network = f"10.213.{number // 64 % 256}"
    first = number % 64 * 4
    host = OtherHost(name, f"{network}.{first + 2}")
    _ip("netns", "add", name)
    try:
        _ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", name)
        _ip("addr", "add", f"{network}.{first + 1}/30", "dev", here)
        _ip("link", "set", here, "up")
        _ip("-n", name, "addr", "add", f"{host.address}/30", "dev", there)
        for link in (there, "lo"):
            _ip("-n", name, "link", "set", link, "up")
        yield host
    finally:
        # The link goes with it.
        _ip("netns", "del", name)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def _carry(source: socket.socket, sink: socket.socket) -> None:
    """Copy from `source` to `sink` until one of them ends; then shut down both."""
    with suppress(OSError):
        while data := source.recv(_CHUNK_BYTES):
            sink.sendall(data)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
