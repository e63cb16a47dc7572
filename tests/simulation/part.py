"""A part of a world: the project's own, in a process of the world, with its lines in memory."""

from collections import deque
from collections.abc import Callable
from typing import Self

from tests.simulation.world import Process, World

from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.coordinator.place import PartEndedError
from cliffwatch.part.child_process import Wake
from cliffwatch.part.lines import Answer, Command, Order, Record, Stop, command_line, parse_command, parse_record
from cliffwatch.part.serve import serve


class SimulatedPlace:
    """In the place of a `LocalPlace`."""

    def __init__(self, world: World) -> None:
        self._world = world

    def start(self, wake: Wake) -> "SimulatedConnection":
        return SimulatedConnection(self._world)


class SimulatedConnection:
    """In the place of a `LocalConnection`: the part dies with the process that started it."""

    def __init__(self, world: World) -> None:
        self._world = world
        coordinator = world.current()
        assert coordinator is not None, "a worker starts it"
        self._coordinator = coordinator
        self._inbox = SimulatedInbox(world)
        self._lines: deque[bytes] = deque()
        self._process = world.spawn("part", self._serve, coordinator)
        self.identity = ProcessIdentity.of(self._process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def send(self, command: Command) -> None:
        self._inbox.lines.append(command_line(command))
        self._world.wake(self._process)

    def poll(self, seconds: float, now: Callable[[], float]) -> list[Record | Answer]:
        if not self._lines and self._process.is_alive:
            self._world.sleep(seconds, until_signal=True)
        self._coordinator.is_woken = False
        records = [parse_record(line) for line in self._lines]
        self._lines.clear()
        if not records and not self._process.is_alive:
            raise PartEndedError(f"the run's part ended: {self._process.exit_status} {self._process.said}")
        return records

    def wait(self, seconds: float) -> None:
        while self._process.is_alive:
            self._world.sleep(0.01)

    def kill(self) -> None:
        self._world.end(self._process, -9)

    def put(self, line: bytes) -> None:
        """A line of the part's."""
        self._lines.append(line)
        self._world.wake(self._coordinator)

    def _serve(self) -> None:
        order = self._inbox.next()
        assert isinstance(order, Order), "it is the first of all commands"
        serve(self._inbox, self, order)


class SimulatedInbox:
    """In the place of an `Inbox`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.lines: deque[bytes] = deque()
        self._commands: deque[Command] = deque()
        self._is_stopped = False

    def fileno(self) -> int:
        return -1

    def next(self) -> Command:
        while not self._commands:
            if not self.lines:
                self.wait(float("inf"))
            self._read()
        return self._commands.popleft()

    def is_stopped(self) -> bool:
        self._read()
        return self._is_stopped

    def wait(self, seconds: float | None) -> None:
        self._world.sleep(float("inf") if seconds is None else seconds, until_signal=True)
        self._present().is_woken = False

    def _read(self) -> None:
        while self.lines:
            command = parse_command(self.lines.popleft())
            if isinstance(command, Stop):
                self._is_stopped = True
            else:
                self._commands.append(command)

    def _present(self) -> Process:
        process = self._world.current()
        assert process is not None, "only a process of this world calls that"
        return process
