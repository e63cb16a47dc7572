"""Shared state of a part's steps: `Order` command, engine, run clock, lines to the coordinator."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from cliffwatch.base.clock import Clock, SystemClock, VirtualClock
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.engines.contract import Engine
from cliffwatch.engines.registry import engine_of, load_of
from cliffwatch.journal.events import EventType
from cliffwatch.model.workload import Workload
from cliffwatch.part.lines import Command, EngineAt, Happened, LeftProcess, Order, Record, record_line

POLL_SECONDS = 0.25
#: Pause between two attempts to write while the part's disk is full.
FULL_DISK_PAUSE_SECONDS = 1.0


class Commands(Protocol):
    """Source of a part's commands, such as an `Inbox`."""

    def fileno(self) -> int: ...

    def next(self) -> Command: ...

    def is_stopped(self) -> bool: ...

    def wait(self, seconds: float | None) -> None: ...


class Lines(Protocol):
    """Writer of a part's lines."""

    def put(self, line: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class PartClock:
    """Run clock: the machine's monotonic clock plus the offset that the coordinator sends."""

    clock: Clock
    ahead_of_monotonic: float

    def now(self) -> float:
        """Seconds since the epoch."""
        return self.clock.monotonic() + self.ahead_of_monotonic


class PartContext:
    """Context of one part of one run."""

    def __init__(self, order: Order, inbox: Commands, lines: Lines) -> None:
        """Raises Problem when the workload's engine is unknown, or does not accept its `load`."""
        self.order = order
        self.workload: Workload = order.run.workload
        self.directory: Path = order.directory
        self.engine: Engine = engine_of(self.workload)
        self.load: Any = load_of(self.workload)
        clock: Clock = SystemClock() if order.virtual_start is None else VirtualClock(order.virtual_start)
        self._clock = clock
        self.run_clock = PartClock(clock, order.ahead_of_monotonic_seconds)
        self.inbox = inbox
        self._lines = lines
        self._left: tuple[ProcessIdentity, ...] = ()

    @property
    def is_virtual(self) -> bool:
        """Whether the run uses a virtual clock."""
        return isinstance(self._clock, VirtualClock)

    def emit(self, record: Record) -> None:
        self._lines.put(record_line(record))

    def record_event(self, type_: EventType, name: str, /, **detail: Any) -> None:
        self.emit(Happened(self.run_clock.now(), type_, name, detail))

    def follow(self, process: ProcessIdentity | None, start: float | None = None) -> None:
        """Report the process that the part waits for now. `start`: when an engine's first window begins."""
        self.emit(EngineAt(process, start))

    def leave(self, process: ProcessIdentity) -> None:
        """Stop waiting for a process that was killed and does not end, and report that."""
        self._left = (*self._left, process)
        self.emit(LeftProcess(process))
        self.record_event(EventType.ENGINE, "cannot_end", pid=process.pid, what=process.waits_in())

    def hung(self) -> list[ProcessIdentity]:
        """Abandoned processes still alive, presumably blocked in I/O: their drive would block other processes, too."""
        return [process for process in self._left if process.is_alive()]

    def wait(self, seconds: float) -> None:
        """Wait on the run's clock; in real time a command ends the wait."""
        if isinstance(self._clock, VirtualClock):
            self._clock.sleep(seconds)
        else:
            self.inbox.wait(max(0.0, seconds))

    def pause(self, seconds: float) -> bool:
        """Wait for `seconds` on the run's clock, or until a stop; returns whether a stop came."""
        end = self.run_clock.now() + seconds
        while not self.inbox.is_stopped() and self.run_clock.now() < end - 1e-6:
            self.wait(min(POLL_SECONDS, end - self.run_clock.now()))
        return self.inbox.is_stopped()

    def advance_virtual(self, moment: float) -> None:
        """Advance the virtual clock to `moment`; does nothing in real time."""
        if isinstance(self._clock, VirtualClock):
            self._clock.advance_to(moment)


def own_cost() -> tuple[float, int]:
    """CPU seconds of this process so far, and its peak resident memory in bytes.

    The peak is read from /proc, because getrusage would count the memory of the process that started this one.
    """
    status = Path("/proc/self/status").read_text()
    peak = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024
    return round(time.process_time(), 3), peak
