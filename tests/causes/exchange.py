"""A client and a broker of requests and answers over TCP, with a network between them that can be made slow.

The client measures the round trip besides, which distinguishes a slow network from a slow broker.
"""

import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from testkit.worker_runs import queue_run

from cliffwatch.base.histogram import Histogram
from cliffwatch.journal import EventLog, WindowLog
from cliffwatch.journal.state import change_state
from cliffwatch.model.run_state import RunState
from cliffwatch.model.window import EngineRecord, EngineWindow

_REQUEST, _PING = b"r", b"p"
#: What the broker needs for a request; a ping is answered at once.
_WORK_SECONDS = 0.002
_LOOPBACK = "127.0.0.1"


class Broker:
    """Answers every byte."""

    def __init__(self) -> None:
        self._listener = socket.create_server((_LOOPBACK, 0))
        self.port = self._listener.getsockname()[1]
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def close(self) -> None:
        for each in (self._listener, *self._connections):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._listener.close()

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
                far = socket.create_connection((_LOOPBACK, self._broker.port))
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._relay, args=(source, sink), daemon=True).start()

    def _relay(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while passing := source.recv(4096):
                time.sleep(self.delay_seconds)
                sink.sendall(passing)
        with suppress(OSError), source:
            sink.shutdown(socket.SHUT_RDWR)


class Client:
    """Sends one request after the other, and a ping after every tenth; one window a second into a journal."""

    def __init__(self, directory: Path, port: int) -> None:
        self.journal = queue_run(directory / "run", window="1s", phases={"soak": "2m"})
        self._connection = socket.create_connection((_LOOPBACK, port))
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def execute_run(self, seconds: int, at_second: int, disturb: Callable[[], None]) -> float:
        """Windows of so many seconds; `disturb` is called before second `at_second`, whose start is returned."""
        start = float(int(time.time()) + 1)
        time.sleep(start - time.time())
        windows = []
        for second in range(seconds):
            if second == at_second:
                disturb()
            windows.append(self._window(start + second))
        write_windows(self.journal, windows)
        return start + at_second

    def _window(self, start: float) -> EngineWindow:
        histogram, pings = Histogram(), []
        while (due := time.time()) < start + 1:
            self._exchange(_REQUEST)
            histogram.record(round((time.time() - due) * 1e9))
            if histogram.count % 10 == 1:
                pings.append(self._exchange(_PING))
        counters = {"operations": histogram.count, "bytes": histogram.count, "disconnects": 0}
        gauges = {"round_trip_seconds": sum(pings) / len(pings)} if pings else {}
        return EngineWindow(start, start + 1, counters, gauges, {"publish": histogram})

    def _exchange(self, byte: bytes) -> float:
        began = time.time()
        self._connection.sendall(byte)
        assert self._connection.recv(1) == byte
        return time.time() - began

    def close(self) -> None:
        self._connection.close()


def write_windows(journal: Path, windows: Sequence[EngineRecord]) -> None:
    """Into the journal of a run that is queued, as a worker writes what its engine reports."""
    measured = [window for window in windows if isinstance(window, EngineWindow)]
    start = measured[0].start
    change_state(EventLog(journal), RunState.RUNNING, start, {"load_start": start, "load_stop": start + 120})
    log = WindowLog(journal, start)
    for window in measured:
        log.append(window, "soak")
    log.close()
