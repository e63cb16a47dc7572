"""A client and a broker of requests and answers over TCP, with a network between them that can be made slow.

Stands for brokers in general: the client measures what their engines do, and writes a journal as a worker does.
"""

import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.worker.runs import queue_run

from cliffwatch.histogram import Histogram
from cliffwatch.journal import EventLog, WindowLog
from cliffwatch.runs.states import RunState, change_state
from cliffwatch.window import EngineWindow

_REQUEST, _PING = b"r", b"p"
#: What the broker needs for a request; a ping is answered at once.
_WORK_SECONDS = 0.002
_LOOPBACK = "127.0.0.1"


class Broker:
    """Answers every byte. While it is down nobody listens, and connections are broken."""

    def __init__(self) -> None:
        self.port = 0
        self._listener: socket.socket | None = None
        self._connections: list[socket.socket] = []
        self.start()

    def start(self) -> None:
        self._listener = socket.create_server((_LOOPBACK, self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def stop(self) -> None:
        assert self._listener is not None
        for each in (self._listener, *self._connections):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._connections.clear()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                self._connections.append(connection)
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            while request := connection.recv(1):
                if request == _REQUEST:
                    time.sleep(_WORK_SECONDS)
                connection.sendall(request)


class Network:
    """A relay to a broker; whatever passes is late by `delay_seconds` each way."""

    def __init__(self, broker: Broker) -> None:
        self.delay_seconds = 0.0
        self._broker = broker
        self._listener = socket.create_server((_LOOPBACK, 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    far = socket.create_connection((_LOOPBACK, self._broker.port))
                except OSError:
                    near.close()
                    continue
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._relay, args=(source, sink), daemon=True).start()

    def _relay(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while passing := source.recv(4096):
                time.sleep(self.delay_seconds)
                sink.sendall(passing)
        with suppress(OSError), source:
            sink.shutdown(socket.SHUT_RDWR)


@dataclass(slots=True)
class _Window:
    histogram: Histogram = field(default_factory=Histogram)
    disconnects: int = 0
    pings: list[float] = field(default_factory=list)


class Client:
    """Sends one request after the other, and a ping after every tenth; one window a second into a journal."""

    def __init__(self, directory: Path, port: int) -> None:
        self.journal = queue_run(directory / "run", window="1s", phases={"soak": "2m"})
        self._port = port
        self._connection: socket.socket | None = None

    def carry_out(self, seconds: int, at_second: int, disturb: "threading.Thread") -> float:
        """Windows of so many seconds; `disturb` is started before second `at_second`, whose start is returned."""
        start = float(int(time.time()) + 1)
        change_state(EventLog(self.journal), RunState.RUNNING, start, {"load_start": start, "load_stop": start + 120})
        log = WindowLog(self.journal, start)
        time.sleep(start - time.time())
        for second in range(seconds):
            if second == at_second:
                disturb.start()
            window = self._window(start + second + 1)
            counters = {"operations": window.histogram.count, "bytes": 0, "disconnects": window.disconnects}
            gauges = {"round_trip_seconds": sum(window.pings) / len(window.pings)} if window.pings else {}
            log.append(
                EngineWindow(start + second, start + second + 1, counters, gauges, {"publish": window.histogram}),
                "soak",
            )
        log.close()
        disturb.join()
        return start + at_second

    def _window(self, end: float) -> _Window:
        window = _Window()
        count = 0
        due = time.time()
        while due < end:
            try:
                self._exchange(_REQUEST)
                window.histogram.record(round((time.time() - due) * 1e9))
                count += 1
                if count % 10 == 1:
                    window.pings.append(self._exchange(_PING))
                due = time.time()
            except OSError:
                # What is due stays due: its latency counts from then, however often it has to be sent.
                window.disconnects += self._connection is not None
                self.close()
                time.sleep(0.01)
                if time.time() >= end:
                    break
        return window

    def _exchange(self, byte: bytes) -> float:
        began = time.time()
        if self._connection is None:
            self._connection = socket.create_connection((_LOOPBACK, self._port))
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection.sendall(byte)
        if self._connection.recv(1) != byte:
            raise ConnectionResetError("the broker went away")
        return time.time() - began

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
