"""Shared state of a run's stages: order.json, journal, clocks, metrics."""

import errno
import os
import select
import signal
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cliffwatch.base import durable
from cliffwatch.base.clock import Clock, RunClock, SystemClock, VirtualClock
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.coordinator.detection import Detection
from cliffwatch.coordinator.heartbeat import Heartbeat, processes_left
from cliffwatch.coordinator.metrics import WorkerFigures, serve_metrics
from cliffwatch.engines.contract import Engine
from cliffwatch.engines.registry import engine_of, load_of
from cliffwatch.journal import Event, EventLog, EventType, JournalReader, WindowLog, files
from cliffwatch.journal.state import RunStatus, change_state, status_of
from cliffwatch.model.order import RunOrder
from cliffwatch.model.run_state import RunState
from cliffwatch.model.settings import Settings
from cliffwatch.model.target import shown_targets
from cliffwatch.model.workload import Workload
from cliffwatch.part.lines import Closed
from cliffwatch.telemetry.collection import CollectionTask

#: A heartbeat is due this often, by the monotonic clock.
HEARTBEAT_SECONDS = 2.0
#: Pause between two attempts to write while the journal's disk is full.
FULL_DISK_PAUSE_SECONDS = 1.0
#: Most events that wait in memory while they cannot be written; beyond that the oldest are dropped.
UNWRITTEN_LIMIT = 1000
#: How long a change of state waits for a journal whose path does not exist: the disk may be mounted again.
AWAY_SECONDS = 120.0


@dataclass(slots=True)
class RunContext:
    """Context of one run in its worker: order.json, journal, clocks, metrics."""

    directory: Path
    settings: Settings
    order: RunOrder
    engine: Engine
    load: Any
    clock: Clock
    run_clock: RunClock
    events: EventLog
    windows: WindowLog
    figures: WorkerFigures
    metrics_port: int | None
    wake_fd: int
    signals: list[int]
    identity: ProcessIdentity
    #: Processes of the parts, and of their engines, by part name; None while a part has no engine.
    parts: dict[str, ProcessIdentity | None] = field(default_factory=dict)
    engines: dict[str, ProcessIdentity | None] = field(default_factory=dict)
    #: CPU time and memory that the parts used, once they are closed.
    part_costs: list[Closed] = field(default_factory=list)
    telemetry: CollectionTask | None = None
    detection: Detection | None = None
    #: Processes of the run that were killed and have not ended, started by this worker or an earlier one.
    left: tuple[ProcessIdentity, ...] = ()
    _last_heartbeat: float = field(default=float("-inf"))
    _unwritten: deque[Event] = field(default_factory=lambda: deque(maxlen=UNWRITTEN_LIMIT))

    @classmethod
    def open(cls, directory: Path, settings: Settings, wake_fd: int, signals: list[int]) -> "RunContext":
        """Open a run's journal to execute the run.

        Raises Problem when the journal cannot be read or the workload's engine or load is not valid, ValidationError
        when order.json is not valid.
        """
        reader = JournalReader(directory)
        order = RunOrder.model_validate(reader.document(files.ORDER))
        engine, load = engine_of(order.workload), load_of(order.workload)
        windows = WindowLog(directory, order.created_at)
        # If the wall clock was set back, run time still does not go back before the last window or the load's start.
        begun = status_of(stored.event for stored in reader.events())
        load_start = 0.0 if begun is None or begun.load_start is None else begun.load_start
        not_before = windows.last.end if windows.last else load_start
        is_virtual = engine.is_virtual(load)
        clock: Clock = VirtualClock(max(order.created_at, not_before)) if is_virtual else SystemClock()
        figures = WorkerFigures(
            run_id=order.run_id,
            workload=order.workload.name,
            engine=engine.name,
            target=shown_targets(order.parts.values()),
            start=order.created_at,
            window_seconds=order.workload.window,
        )
        left = processes_left(directory)
        identity = ProcessIdentity.of(os.getpid())
        assert identity is not None, "a process that runs has an identity"
        context = cls(
            directory=directory,
            settings=settings,
            order=order,
            engine=engine,
            load=load,
            clock=clock,
            run_clock=RunClock(clock, not_before=not_before),
            events=EventLog(directory),
            windows=windows,
            figures=figures,
            metrics_port=serve_metrics(figures),
            wake_fd=wake_fd,
            signals=signals,
            identity=identity,
        )
        for process in left:
            context.leave(process)
        if windows.recovered_bytes:
            context.record_event(EventType.JOURNAL, "window_in_progress_discarded", bytes=windows.recovered_bytes)
        if windows.orphaned_bytes:
            context.record_event(EventType.JOURNAL, "windows_damaged", kept_bytes=windows.orphaned_bytes)
        return context

    @property
    def workload(self) -> Workload:
        return self.order.workload

    def record_event(self, type_: EventType, name: str, /, **detail: Any) -> None:
        """Append an event that happens now, as `record` does."""
        self.record(Event(self.run_clock.now(), type_, name, detail))

    def record(self, event: Event) -> None:
        """Append an event to the journal, or keep it in memory while a failed write may succeed later (`_may_pass`)."""
        self._unwritten.append(event)
        self.catch_up()
        if self.detection is not None:
            self.detection.notice(event)

    def catch_up(self) -> bool:
        """Append the events that wait in memory, in order; returns whether all are written."""
        while self._unwritten:
            try:
                self.events.append(self._unwritten[0])
            except OSError as error:
                if not _may_pass(error):
                    raise
                return False
            self._unwritten.popleft()
        return True

    def status(self) -> RunStatus:
        """Status of the run from its journal, as of now."""
        status = status_of(stored.event for stored in JournalReader(self.directory).events())
        assert status is not None, "a run is queued before it is given to a worker"
        return status

    def enter(self, state: RunState, **detail: Any) -> RunStatus:
        """Change the run's state; waits until the journal can be written. Raises Problem(wrong_state), OSError."""
        patient_until = SystemClock().monotonic() + AWAY_SECONDS
        while True:
            try:
                if self.catch_up():
                    return change_state(self.events, state, self.run_clock.now(), detail)
            except OSError as error:
                if not _may_pass(error):
                    raise
            if SystemClock().monotonic() > patient_until:
                # A full disk is waited for without limit; a journal whose path is still missing raises here.
                self.directory.stat()
            self.wait_beating(FULL_DISK_PAUSE_SECONDS)

    def beat(self) -> None:
        """Renew the heartbeat when it is due, and run the periodic tasks beside the load."""
        now = SystemClock().monotonic()
        if now - self._last_heartbeat < HEARTBEAT_SECONDS:
            return
        self._last_heartbeat = now
        self.beat_now()
        if self.telemetry is not None:
            self.telemetry.poll(self.run_clock.now())

    def leave(self, process: ProcessIdentity) -> None:
        """Stop waiting for a process that was killed and does not end, and record that."""
        self.left = (*self.left, process)
        self.record_event(EventType.ENGINE, "cannot_end", pid=process.pid, what=process.waits_in())
        self.beat_now()

    def hung(self) -> list[ProcessIdentity]:
        """Abandoned processes still alive, presumably blocked in I/O: their drive would block other processes, too."""
        return [process for process in self.left if process.is_alive()]

    def beat_now(self) -> None:
        heartbeat = Heartbeat(
            SystemClock().wall(),
            self.identity,
            self.metrics_port,
            parts=tuple(filter(None, self.parts.values())),
            engines=tuple(filter(None, self.engines.values())),
            left=self.left,
        )
        try:
            heartbeat.write(self.directory)
        except OSError as error:
            # The previous heartbeat stays valid: it names the same worker. Writing windows and events shows whether the
            # run can continue, unless their files were removed. On a full disk these are made anew once there is room.
            if not durable.is_full(error) and self.windows.displaced() is not None:
                raise

    def look_at_clock(self) -> None:
        """Record that the machine slept, or that its wall clock was set, since the last call."""
        shift = self.run_clock.shift()
        if shift is None:
            return
        if shift.suspended_seconds:
            slept = round(shift.suspended_seconds, 3)
            self.record_event(EventType.CLOCK, "machine_suspended", seconds=slept)
        if shift.set_seconds:
            self.record_event(EventType.CLOCK, "wall_clock_jumped", seconds=round(shift.set_seconds, 3))

    def take_signal(self) -> bool:
        """Whether a signal came in since the last call."""
        taken = bool(self.signals)
        self.signals.clear()
        return taken

    @property
    def is_virtual(self) -> bool:
        """Whether the run uses a virtual clock."""
        return isinstance(self.clock, VirtualClock)

    def wait(self, seconds: float) -> None:
        """Wait on the run's clock; in real time a signal ends the wait."""
        if isinstance(self.clock, VirtualClock):
            self.clock.sleep(seconds)
        elif select.select([self.wake_fd], [], [], max(0.0, seconds))[0]:
            self.clear_wake()

    def clear_wake(self) -> None:
        """Drain the wake descriptor, so that the next wait lasts until another signal."""
        os.read(self.wake_fd, 4096)

    def wait_beating(self, seconds: float) -> None:
        """Wait in real time, even if the run uses a virtual clock, and renew the heartbeat meanwhile."""
        end = SystemClock().monotonic() + seconds
        while (left := end - SystemClock().monotonic()) > 0:
            if select.select([self.wake_fd], [], [], min(left, HEARTBEAT_SECONDS))[0]:
                self.clear_wake()
            self.beat()

    def advance_virtual(self, moment: float) -> None:
        """Advance the virtual clock to `moment`; does nothing in real time."""
        if isinstance(self.clock, VirtualClock):
            self.clock.advance_to(moment)


def wake_on(*numbers: signal.Signals) -> tuple[int, list[int]]:
    """Make the given signals end a wait. Returns a descriptor that they make readable, and a list of those received."""
    received: list[int] = []
    read_fd, write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda received_number, _: received.append(received_number))
    return read_fd, received


def _may_pass(error: OSError) -> bool:
    """Whether a failed write to the journal may succeed later: there is no room, its lock is held, or its path leads
    nowhere, as after it was moved or its file system unmounted."""
    return durable.is_temporary(error) or error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)
