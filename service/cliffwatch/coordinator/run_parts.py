"""Coordinate a run's parts: send each its command, wait for all answers, abandon parts that stop answering."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self, TypeVar

from cliffwatch.base.clock import SystemClock
from cliffwatch.base.errors import Problem
from cliffwatch.coordinator.context import RunContext
from cliffwatch.coordinator.place import Place
from cliffwatch.journal import Event
from cliffwatch.model.part_names import ONLY_PART
from cliffwatch.part.child_process import LEAVE_SECONDS, Wake
from cliffwatch.part.lines import Answer, Close, Closed, Command, EngineAt, Happened, LeftProcess, Record, Refused, Stop

POLL_SECONDS = 0.25
#: How long a part has to answer after a stop, in addition to its engine's grace period.
ANSWER_SECONDS = 4 * LEAVE_SECONDS
A = TypeVar("A", bound=Answer)


class PartLeftError(Exception):
    """A part did not answer after a stop, and was killed; its run goes on without it."""


class RunParts:
    """All parts of a run. Use as a context manager: leaving it ends the parts."""

    def __init__(self, context: RunContext, place: Place) -> None:
        """Start the run's parts. Raises Problem(component_missing)."""
        self._context = context
        self._connections = {}
        self._has_been_stopped = self._is_left = False
        self._held = ExitStack()
        for name in context.order.parts:
            connection = place.start(Wake(context.wake_fd, context.clear_wake))
            self._connections[name] = self._held.enter_context(connection)
            context.parts[name] = connection.identity
        context.beat_now()

    @property
    def names(self) -> list[str]:
        return list(self._connections)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()
        context = self._context
        for process in (*context.engines.values(), *context.parts.values()):
            if process is not None and process not in context.left and not process.wait_gone(LEAVE_SECONDS):
                context.leave(process)
        context.engines.clear()
        context.parts.clear()
        context.beat_now()

    def ask(
        self,
        command: Command | Mapping[str, Command],
        answer: type[A],
        look: Callable[[], bool],
        take: Callable[[str, Record | Answer], None] = lambda part, record: None,
    ) -> dict[str, A]:
        """Send each part its command, and return the answers, which are of type `answer`, by part.

        `take(part, line)` is called for each record and answer. `look` is called several times a second; once it
        returns True, the parts are stopped. Raises Problem when a part refuses, PartLeftError when a part does not
        answer after a stop, and PartEndedError.
        """
        context = self._context
        if self._is_left:
            raise PartLeftError
        for part, connection in self._connections.items():
            connection.send(command[part] if isinstance(command, Mapping) else command)
        answers: dict[str, A] = {}
        refusals: dict[str, Refused] = {}
        stopped_at: float | None = None
        while len(answers) + len(refusals) < len(self._connections):
            asked = [part for part in self._connections if part not in answers and part not in refusals]
            for part in asked:
                for line in self._connections[part].poll(POLL_SECONDS / len(asked), context.run_clock.now):
                    if isinstance(line, answer):
                        answers[part] = line
                    elif isinstance(line, Refused):
                        refusals[part] = line
                    else:
                        assert not isinstance(line, Answer), "a part answers what it was asked"
                        self._keep(part, line)
                    take(part, line)
            context.beat()
            if not look():
                continue
            now = SystemClock().monotonic()
            stopped_at = now if stopped_at is None else stopped_at
            if not self._has_been_stopped:
                self._stop()
            elif now - stopped_at > context.workload.stop_grace + ANSWER_SECONDS:
                self._leave(part for part in asked if part not in answers and part not in refusals)
        for part, refused in refusals.items():
            raise Problem(refused.code, refused.message if part == ONLY_PART else f"{part}: {refused.message}")
        return {part: answers[part] for part in self._connections}

    def close(self) -> list[Closed]:
        """Close the parts: they release their targets, report what they used, and exit. Raises as `ask`."""
        closed = self.ask(Close(), Closed, lambda: True)
        for connection in self._connections.values():
            connection.wait(LEAVE_SECONDS)
        return list(closed.values())

    def _stop(self) -> None:
        self._has_been_stopped = True
        for connection in self._connections.values():
            connection.send(Stop())

    def _leave(self, parts: Iterable[str]) -> None:
        self._is_left = True
        for part in parts:
            self._connections[part].kill()
        raise PartLeftError

    def _keep(self, part: str, record: Record) -> None:
        """Process a record for the journal or the heartbeat; such records may come during any command."""
        context = self._context
        if isinstance(record, Happened):
            context.advance_virtual(record.at)
            whose = {} if part == ONLY_PART else {"part": part}
            context.record(Event(record.at, record.type, record.name, {**record.detail, **whose}))
        elif isinstance(record, EngineAt):
            context.engines[part] = record.process
            context.beat_now()
        elif isinstance(record, LeftProcess):
            context.left = (*context.left, record.process)
            context.beat_now()
