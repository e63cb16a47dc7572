"""A run's part, as its coordinator sees it: asked for one thing at a time, and left when it answers no more."""

from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from cliffwatch.base.clock import SystemClock
from cliffwatch.base.errors import Problem
from cliffwatch.coordinator.context import RunContext
from cliffwatch.coordinator.place import Place
from cliffwatch.journal import Event
from cliffwatch.part.child_process import LEAVE_SECONDS, Wake
from cliffwatch.part.lines import Answer, Close, Closed, Command, EngineAt, Happened, LeftProcess, Record, Refused, Stop

POLL_SECONDS = 0.25
#: How long a part has, beside its engine's grace, to answer after a stop.
ANSWER_SECONDS = 4 * LEAVE_SECONDS
A = TypeVar("A", bound=Answer)


class PartLeftError(Exception):
    """A part did not answer after a stop, and was killed; its run goes on without it."""


class RunPart:
    """One part. Use as a context manager: leaving it ends the part."""

    def __init__(self, context: RunContext, place: Place) -> None:
        """Raises Problem(component_missing)."""
        self._context = context
        self._connection = place.start(Wake(context.wake_fd, context.clear_wake))
        self._has_been_stopped = self._is_left = False
        context.part_identity = self._connection.identity
        context.beat_now()

    def __enter__(self) -> Self:
        self._connection.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.__exit__(kind, error, trace)
        context = self._context
        for process in (context.engine_identity, context.part_identity):
            if process is not None and process not in context.left and not process.wait_gone(LEAVE_SECONDS):
                context.leave(process)
        context.engine_identity = context.part_identity = None
        context.beat_now()

    def ask(
        self,
        command: Command,
        answer: type[A],
        look: Callable[[], bool],
        take: Callable[[Record], None] = lambda record: None,
    ) -> A:
        """Send a command and wait for its answer. `take` gets the records that come before.

        `look` is called several times a second, and says whether the command is to end early. Raises Problem where the
        part refuses, PartLeftError, and PartEndedError.
        """
        context = self._context
        if self._is_left:
            raise PartLeftError
        self._connection.send(command)
        stopped_at: float | None = None
        while True:
            for line in self._connection.poll(POLL_SECONDS, context.run_clock.now):
                if isinstance(line, answer):
                    return line
                if isinstance(line, Refused):
                    raise Problem(line.code, line.message)
                assert not isinstance(line, Answer), "a part answers what it was asked"
                self._keep(line)
                take(line)
            context.beat()
            if not look():
                continue
            now = SystemClock().monotonic()
            stopped_at = now if stopped_at is None else stopped_at
            if not self._has_been_stopped:
                self._has_been_stopped = True
                self._connection.send(Stop())
            elif now - stopped_at > context.workload.stop_grace + ANSWER_SECONDS:
                self._connection.kill()
                self._is_left = True
                raise PartLeftError

    def close(self) -> Closed:
        """Have it release the target and end. Raises as `ask` does."""
        closed = self.ask(Close(), Closed, lambda: True)
        self._connection.wait(LEAVE_SECONDS)
        return closed

    def _keep(self, record: Record) -> None:
        """What concerns the journal and the heartbeat, whatever the command."""
        context = self._context
        if isinstance(record, Happened):
            context.advance_virtual(record.at)
            context.record(Event(record.at, record.type, record.name, record.detail))
        elif isinstance(record, EngineAt):
            context.engine_identity = record.process
            context.beat_now()
        elif isinstance(record, LeftProcess):
            context.left = (*context.left, record.process)
            context.beat_now()
