"""Reserved loopback ports: no other test, no other process of the tests and no connection takes them.

A port that the kernel chose may be given to another process between its release and the start of the program under
test: the kernel takes the source ports of connections from the same range. So ports come from below that range, and
each is locked for the lifetime of the process that requested it, in a file that all checkouts of a user share.
"""

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from cliffwatch.base.durable import PRIVATE_FILE

HOST = "127.0.0.1"
#: Number of ports below the kernel's range that can be reserved.
COUNT = 12_000
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """A port without a listener, reserved for this process for as long as it lives."""
    ledger = _ledger()
    for port in ledger.untried:
        if ledger.lock(port) and _is_closed(port):
            return port
    raise AssertionError(f"none of {COUNT} ports is free: {ledger.path} has a lock for each that is used")


def free_ports(count: int) -> list[int]:
    """`count` different reserved ports."""
    return [free_port() for _ in range(count)]


def free_address() -> str:
    """A reserved `host:port`, as programs take it for a listener."""
    return f"{HOST}:{free_port()}"


class _Ledger:
    """Lock file of reserved ports: a process locks the byte at its port's number. `untried`: ports not tried yet."""

    def __init__(self) -> None:
        end = int(_RANGE.read_text().split()[0])
        self.path = Path(tempfile.gettempdir()) / f"cliffwatch-test-ports-{os.geteuid()}"
        # Record locks end with the process, or when it first closes the file: so the file stays open.
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        # Each process begins at a different port, so that it seldom tries one that another process reserved.
        self.untried: Iterator[int] = iter(
            [end - COUNT + (os.getpid() * 61 + number) % COUNT for number in range(COUNT)]
        )

    def lock(self, port: int) -> bool:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except OSError:
            return False
        return True


@cache
def _ledger() -> _Ledger:
    """The ledger of this process; one per process, because the kernel keeps these locks by process."""
    return _Ledger()


def _is_closed(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
