"""Place of a part: the machine that the part runs on, and the connection to it.

A place starts the program `cliffwatch.part` and connects to its stdin and stdout, which carry the lines of
`part/lines.py`. On this machine the part is a child process, which ends with its coordinator.
"""

import sys
from collections.abc import Callable
from typing import Protocol, Self

from cliffwatch.base.clock import SystemClock
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.engines.contract import Launch
from cliffwatch.part.child_process import ChildProcess, Wake, status_text
from cliffwatch.part.lines import Answer, Command, Record, command_line, parse_record

_END_POLL_SECONDS = 0.05


class PartEndedError(Exception):
    """A part ended before it answered."""


class Connection(Protocol):
    """Connection to a running part. Use as a context manager: leaving it ends the part, even during a command."""

    @property
    def identity(self) -> ProcessIdentity | None:
        """The part's process on this machine; None if it has none here."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def send(self, command: Command) -> None: ...

    def poll(self, seconds: float, now: Callable[[], float]) -> list[Record | Answer]:
        """Records that arrive within `seconds`. Returns early when any arrive, or when the coordinator is woken.

        Raises PartEndedError.
        """
        ...

    def wait(self, seconds: float) -> None:
        """Wait, with a timeout, for a part that was sent `Close` to end by itself."""
        ...

    def kill(self) -> None: ...


class Place(Protocol):
    """A machine, or something like one, on which a part can be started."""

    def start(self, wake: Wake) -> Connection: ...


class LocalPlace:
    """Place that starts parts on this machine."""

    def start(self, wake: Wake) -> Connection:
        """Start a part. Raises Problem(component_missing)."""
        return LocalConnection(wake)


class LocalConnection:
    """Connection to a part that is a child process, which shares the coordinator's standard error."""

    def __init__(self, wake: Wake) -> None:
        launch = Launch([sys.executable, "-m", "cliffwatch.part"])
        self._process = ChildProcess(launch, _Lines(), None, wake, takes_input=True)

    @property
    def identity(self) -> ProcessIdentity | None:
        return self._process.identity

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.__exit__()

    def send(self, command: Command) -> None:
        self._process.send(command_line(command))

    def poll(self, seconds: float, now: Callable[[], float]) -> list[Record | Answer]:
        records = self._process.poll(seconds, now)
        if not records and self._process.is_finished:
            status, _ = self._process.finish()
            raise PartEndedError(f"the run's part ended: {status_text(status)}")
        return records

    def wait(self, seconds: float) -> None:
        deadline = SystemClock().monotonic() + seconds
        while not self._process.is_finished and SystemClock().monotonic() < deadline:
            self._process.poll(_END_POLL_SECONDS, SystemClock().wall)

    def kill(self) -> None:
        self._process.kill()


class _Lines:
    """Parser of a part's lines into records."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes, received_at: float) -> list[Record | Answer]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return [parse_record(line) for line in lines]

    def finish(self, exit_status: int) -> list[Record | Answer]:
        return []
