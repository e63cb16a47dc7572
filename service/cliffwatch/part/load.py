"""Load of a part: run one engine after another until the load's end, and add kernel counters to their windows.

An engine that dies is started again with growing pauses, a bounded number of times. A stop lets it finish its window.
"""

from dataclasses import replace

from cliffwatch.analysis.coverage import GAP_TOLERANCE
from cliffwatch.analysis.run_evidence import LoadEnd
from cliffwatch.base import durable
from cliffwatch.base.errors import Problem
from cliffwatch.engines.contract import EngineContext, Launch
from cliffwatch.engines.run_time import run_time_variable
from cliffwatch.journal import files
from cliffwatch.journal.events import TARGET_DISPLACED, EventType
from cliffwatch.model.timeline import grid_line_at_or_after, lead_seconds
from cliffwatch.model.window import BEGUN, EngineEnd, EngineEvent, EngineRecord, EngineWindow
from cliffwatch.part.child_process import ChildProcess, Wake, failure_text
from cliffwatch.part.context import FULL_DISK_PAUSE_SECONDS, POLL_SECONDS, PartContext
from cliffwatch.part.device_io import DeviceIo
from cliffwatch.part.ending import Ending
from cliffwatch.part.engine_deaths import EngineDeaths
from cliffwatch.part.engine_events import EventLimit
from cliffwatch.part.frozen_windows import FrozenWindows
from cliffwatch.part.host import HostConditions
from cliffwatch.part.lines import Load, Loaded, Moved
from cliffwatch.part.silence import SilenceWatch
from cliffwatch.part.target import PartTarget, surroundings


class PartLoad:
    """One load on one target, until its end."""

    def __init__(self, context: PartContext, target: PartTarget, command: Load) -> None:
        self._context = context
        self._examined = target
        self._target = target.held
        self._command = command
        self._start, self._stop = command.start, command.stop
        #: Whether the load's start may still be moved: until the run's first engine has begun.
        self._may_move = command.may_move
        self._restarts = command.restarts
        self._windows = 0
        self._device_io = DeviceIo(target.counted_drives)
        self._reported_until = command.reported_until
        # Host conditions say nothing about a window that takes only as long as printing it, or that others recorded.
        self._host = None if context.is_virtual or context.engine.reads_history else HostConditions()
        self._engine_pid: int | None = None
        self._engine_end: EngineEnd | None = None
        self._event_limit = EventLimit()
        self._lead_seconds = lead_seconds(target.held.is_device)
        self._refused: str | None = None
        self._freezes = FrozenWindows(context)
        self._silence = SilenceWatch(context, target.drives)
        self._is_displaced = False
        #: When the newest window came, or its engine was started.
        self._heard_at = float("-inf")

    def execute(self) -> Loaded:
        """Execute the load: returns when it is over, stopped, or cannot go on. Raises Problem."""
        try:
            return self._execute()
        finally:
            self._freezes.close()

    def _execute(self) -> Loaded:
        deaths, message = EngineDeaths(), ""
        while True:
            windows_before = self._windows
            start = self._next_start()
            if start is not None:
                message = self._one_engine(start)
            else:
                self._context.pause(self._stop - self._context.run_clock.now())
            if self._refused is not None:
                return Loaded(end=LoadEnd.FAILED, message=self._refused)
            if self._is_stopped():
                return Loaded(end=LoadEnd.STOPPED)
            if self._engine_end is not None and not self._engine_end.restart:
                return Loaded(end=LoadEnd.FAILED, message=message)
            if self._context.run_clock.now() >= self._stop - self._window_seconds * GAP_TOLERANCE:
                # Without any window, the last engine's message is all that is known of the load.
                return Loaded(end=LoadEnd.COMPLETED, message="" if self._windows else message)
            deaths.add(message, self._windows > windows_before)
            self._may_move = False
            self._context.record_event(EventType.ENGINE, "died", message=message, restarts=self._restarts)
            if self._restarts >= self._context.workload.engine_restarts:
                return Loaded(end=LoadEnd.FAILED, message=deaths.sentence(self._restarts + 1))
            self._restarts += 1
            if self._context.pause(deaths.pause_seconds):
                return Loaded(end=LoadEnd.STOPPED)

    @property
    def _window_seconds(self) -> float:
        return self._context.workload.window

    def _is_stopped(self) -> bool:
        return self._context.inbox.is_stopped()

    def _may_start(self) -> bool:
        """Check the target again before an engine starts, since the last check may be a whole window ago."""
        try:
            self._target.require_unused()
        except Problem as problem:
            self._context.record_event(EventType.NOTE, "refused", code=problem.code.value, message=str(problem))
            self._refused = str(problem)
        return self._refused is None

    def _next_start(self) -> float | None:
        """When an engine that is started now would begin its first window; None if the load ends before."""
        ready = grid_line_at_or_after(self._context.run_clock.now() + self._lead_seconds, self._window_seconds)
        start = max(ready, self._start)
        self._move(start)
        last = self._stop - self._window_seconds * GAP_TOLERANCE
        is_left = self._context.engine.reads_history and (self._reported_until or self._start) < last
        return start if start < last or is_left else None

    def _one_engine(self, start: float) -> str:
        """Run one engine process until it has ended; returns its last message."""
        context = self._context
        engine_context = replace(
            surroundings(context, self._examined),
            start=start,
            stop=self._stop,
            resumed=self._command.resumed or self._restarts > 0,
            load_start=self._start,
            reported_until=self._reported_until,
            may_begin_late=self._command.may_move,
        )
        launch = self._launch(engine_context)
        if launch is None:
            return ""
        translator = context.engine.translator(context.load, engine_context)
        if context.pause(start - self._lead_seconds - context.run_clock.now()) or not self._may_start():
            return ""
        self._engine_end = None
        self._device_io.restart()
        if not context.is_virtual:
            clock = run_time_variable(context.run_clock.ahead_of_monotonic)
            launch = replace(launch, environment={**launch.environment, **clock})
        wake = Wake(context.inbox.fileno(), context.inbox.is_stopped)
        with ChildProcess(launch, translator, context.directory / files.ENGINE_LOG, wake) as process:
            self._engine_pid = process.identity.pid if process.identity else None
            if self._host is not None:
                self._host.restart(self._engine_pid)
            self._freezes.follow(self._engine_pid)
            self._silence.follow(process.identity, start)
            context.follow(process.identity, start)
            command = {} if self._restarts else {"command": list(launch.shown or launch.command)}
            context.record_event(EventType.ENGINE, "started", **command, start=start)
            self._watch(process)
            self._freezes.look()
            self._say_for_engine(is_over=process.is_left)
            status, records = process.finish()
            for record in records:
                self._take(record)
            self._record_dropped_events(self._event_limit.finish(context.run_clock.now()))
            message = process.error_text
        self._engine_pid = None
        context.follow(None)
        self._freezes.follow(None)
        self._silence.follow(None, start)
        end = self._engine_end
        if process.is_left:
            return "the engine cannot be ended"
        context.record_event(EventType.ENGINE, "exited", status=status, end=end.status if end else None)
        return failure_text(end, message, status)

    def _launch(self, engine_context: EngineContext) -> Launch | None:
        """Process to start, once the disk has room for the engine's job files; None when a stop came first."""
        while not self._is_stopped():
            try:
                engine_context.scratch.mkdir(exist_ok=True)
                return self._context.engine.launch(self._context.load, engine_context)
            except OSError as error:
                if not durable.is_full(error):
                    raise
                self._context.pause(FULL_DISK_PAUSE_SECONDS)
        return None

    def _watch(self, process: ChildProcess[EngineRecord]) -> None:
        """Read an engine's output until it has ended; end it after a stop, or when it is overdue."""
        context = self._context
        ending = Ending(context, process, context.engine.stop_signal, context.workload.stop_grace)
        self._heard_at = context.run_clock.now()
        while not process.is_finished:
            records = process.poll(POLL_SECONDS, context.run_clock.now)
            # Before the windows of that time are processed.
            self._freezes.look()
            for record in records:
                self._take(record)
            self._say_for_engine()
            self._record_dropped_events(self._event_limit.look(context.run_clock.now()))
            # One that reads the past may begin after the load's end, and takes as long as there are windows to read.
            due = max(self._stop, self._heard_at) if context.engine.reads_history else self._stop
            overdue = due + 2 * self._window_seconds + context.workload.stop_grace
            ending.look(self._is_stopped() or context.run_clock.now() > overdue)

    def _take(self, record: EngineRecord) -> None:
        """Process one record of the engine."""
        if isinstance(record, EngineWindow):
            self._heard_at = self._context.run_clock.now()
            self._report(self._silence.rest_of(record))
        elif isinstance(record, EngineEvent):
            start = record.detail.get("start")
            if record.name == BEGUN and isinstance(start, int | float):
                self._move(min(start, self._stop), begun=True)
                self._may_move = False
                self._silence.begin(start)
            if self._event_limit.passes(record.name, record.detail):
                self._context.record_event(EventType.ENGINE, record.name, **record.detail)
        else:
            self._engine_end = record

    def _say_for_engine(self, *, is_over: bool = False) -> None:
        """Write windows in place of an engine that reports nothing because its target hangs."""
        if not self._may_move and not self._context.is_virtual:
            for window in self._silence.look(self._stop, is_over):
                self._report(window)

    def _record_dropped_events(self, counts: dict[str, int]) -> None:
        for name, count in counts.items():
            self._context.record_event(EventType.ENGINE, "events_dropped", of=name, count=count)

    def _move(self, start: float, *, begun: bool = False) -> None:
        """Move the start of a load that has not begun to `start`, if that is later; the load stays as long."""
        late = start - self._start
        is_late = self._may_move and late > self._window_seconds * GAP_TOLERANCE
        if is_late:
            self._start, self._stop = round(self._start + late, 6), round(self._stop + late, 6)
        if is_late or begun:
            self._context.emit(Moved(self._start, begun))
        if is_late and self._context.run_clock.now() < start:
            # Activity of the drives and the host until then does not belong to the first window.
            self._device_io.restart()
            if self._host is not None and self._engine_pid is not None:
                self._host.restart(self._engine_pid)

    def _report(self, window: EngineWindow) -> None:
        """Subtract freezes of engine or part from a window, add kernel counters, and send it to the coordinator.

        Windows of which nothing can be used, or that begin after the load, are dropped.
        """
        self._may_move = False
        self._look_at_target()
        self._context.advance_virtual(window.end)
        if window.start >= self._stop - self._window_seconds * GAP_TOLERANCE:
            # One of several engines, if it began late, runs on after the load's end: those windows are dropped.
            return
        if not self._freezes.leaves(window):
            self._device_io.restart()
            return
        self._device_io.since_last().add_to(window)
        if self._host is not None:
            self._host.since_last().add_to(window)
        self._windows += 1
        self._reported_until = window.end
        self._context.emit(window)

    def _look_at_target(self) -> None:
        """Record once that the target was moved or removed: an engine that keeps files open does not notice."""
        if self._is_displaced or (displaced := self._target.displaced()) is None:
            return
        self._is_displaced = True
        self._context.record_event(EventType.NOTE, TARGET_DISPLACED, message=displaced)
