"""Commands from the coordinator, read from a descriptor; a stop may arrive while one is executed."""

import os
import select
from collections import deque

from cliffwatch.part.lines import Command, Stop, parse_command

_CHUNK_BYTES = 1 << 16


class CoordinatorGoneError(Exception):
    """The other end of the commands is closed: there is no coordinator any more."""


class Inbox:
    """Commands of one coordinator. Each method raises CoordinatorGoneError once there is no coordinator."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        os.set_blocking(descriptor, False)
        self._rest = b""
        self._commands: deque[Command] = deque()
        self._is_stopped = False

    def fileno(self) -> int:
        """Becomes readable when something came in."""
        return self._descriptor

    def next(self) -> Command:
        """The next command, which is waited for."""
        while not self._commands:
            self.wait(None)
            self._read()
        return self._commands.popleft()

    def is_stopped(self) -> bool:
        """Whether a stop came in, at any time."""
        self._read()
        return self._is_stopped

    def wait(self, seconds: float | None) -> None:
        """Wait until something comes in, for so long at most; None: for as long as it takes."""
        select.select([self._descriptor], [], [], seconds)

    def _read(self) -> None:
        while True:
            try:
                chunk = os.read(self._descriptor, _CHUNK_BYTES)
            except BlockingIOError:
                return
            if not chunk:
                raise CoordinatorGoneError
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            for line in lines:
                command = parse_command(line)
                if isinstance(command, Stop):
                    self._is_stopped = True
                else:
                    self._commands.append(command)
