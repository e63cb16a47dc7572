"""Commands from the coordinator, read from a descriptor; a stop may arrive while a command is executed."""

import os
import select
from collections import deque

from pydantic import ValidationError

from cliffwatch.base.faults import faults_of
from cliffwatch.part.lines import Command, Stop, parse_command

_CHUNK_BYTES = 1 << 16


class CoordinatorGoneError(Exception):
    """The coordinator closed its end of the commands, or is gone."""


class BadCommandError(CoordinatorGoneError):
    """A line that is no command came, so that nothing can be known of what follows; the message says what it was."""


class Inbox:
    """Commands of one coordinator. `next` and `is_stopped` raise CoordinatorGoneError once the coordinator is gone,
    and BadCommandError for a line that is no command."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        os.set_blocking(descriptor, False)
        self._rest = b""
        self._commands: deque[Command] = deque()
        self._is_stopped = False
        self._lines = 0

    def fileno(self) -> int:
        """Descriptor that becomes readable when a command arrives."""
        return self._descriptor

    def next(self) -> Command:
        """Wait for the next command and return it."""
        while not self._commands:
            self.wait(None)
            self._read()
        return self._commands.popleft()

    def is_stopped(self) -> bool:
        """Whether a stop has arrived at any time."""
        self._read()
        return self._is_stopped

    def wait(self, seconds: float | None) -> None:
        """Wait until a command arrives, for at most `seconds`; None: without limit."""
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
                self._lines += 1
                command = self._parsed(line)
                if isinstance(command, Stop):
                    self._is_stopped = True
                else:
                    self._commands.append(command)

    def _parsed(self, line: bytes) -> Command:
        try:
            return parse_command(line)
        except (ValueError, RecursionError) as error:
            words = faults_of(error)[0].message if isinstance(error, ValidationError) else str(error)
            raise BadCommandError(f"line {self._lines} is no command of this version: {words}") from error
