"""The load: engine after engine until the load's end, window after window into the journal.

An engine that dies is started again with growing pauses, a bounded number of times; what was not measured meanwhile is
a gap. A stop and an interruption both let the engine finish its window.
"""

from dataclasses import dataclass, replace

from cliffwatch.analysis.coverage import GAP_TOLERANCE
from cliffwatch.analysis.run_evidence import LoadEnd
from cliffwatch.analysis.steady_state import SteadyWatch
from cliffwatch.base import durable
from cliffwatch.base.clock import SystemClock
from cliffwatch.base.errors import Problem
from cliffwatch.engines.contract import EngineContext, Launch
from cliffwatch.engines.run_time import run_time_variable
from cliffwatch.gate import HeldTarget
from cliffwatch.journal import JournalReader, JournalWindow
from cliffwatch.journal.events import TARGET_DISPLACED, EventType
from cliffwatch.journal.state import MOVED_NOTE
from cliffwatch.model.limits import parse_limit
from cliffwatch.model.phase import Phase
from cliffwatch.model.target import bootstrap_servers_of
from cliffwatch.model.window import BEGUN, EngineEnd, EngineEvent, EngineRecord, EngineWindow
from cliffwatch.model.workload import Workload
from cliffwatch.worker.commit import JOURNAL_FULL, WindowCommitter
from cliffwatch.worker.context import FULL_DISK_PAUSE_SECONDS, RunContext
from cliffwatch.worker.detection import CATCH_UP_SECONDS, Detection
from cliffwatch.worker.device_io import DeviceIo
from cliffwatch.worker.ending import Ending
from cliffwatch.worker.engine_deaths import EngineDeaths
from cliffwatch.worker.engine_events import EventLimit
from cliffwatch.worker.engine_process import EngineProcess, failure_text
from cliffwatch.worker.frozen_windows import FrozenWindows
from cliffwatch.worker.host import HostConditions
from cliffwatch.worker.silence import SilenceWatch
from cliffwatch.worker.timeline import Timeline, grid_line_at_or_after, lead_seconds

POLL_SECONDS = 0.25
#: Why there is a gap: after a window, where nothing else is known, and after another worker's last.
NOT_REPORTED, WORKER_INTERRUPTED = "not_reported_by_engine", "worker_interrupted"


@dataclass(frozen=True, slots=True)
class LoadOutcome:
    """`message` says why a load failed. `was_cleared`: what it wrote was looked at while the target was still held."""

    end: LoadEnd
    message: str = ""
    was_cleared: bool = False


class LoadPhase:
    """Carries the load of one run from where the journal stands to its end."""

    def __init__(
        self, context: RunContext, timeline: Timeline, target: HeldTarget, devices: list[str], resumed: bool
    ) -> None:
        """`devices`: major:minor numbers of the drives below the target, whose counters every window carries."""
        #: Until the first engine of the run is there its load may still be moved; nothing was asked of anybody before.
        self._may_move = not resumed
        self._context = context
        self._timeline = timeline
        self._steady = self._recall_steady()
        self._target = target
        self._device_io = DeviceIo(devices)
        # In virtual time a window lasts as long as it takes to print it; what the host does meanwhile is none of it.
        self._host = None if context.is_virtual else HostConditions()
        names = {device.major_minor: device.name for device in context.figures.devices}
        limits = [parse_limit(limit) for limit in context.workload.limits]
        self._detection = Detection(context.directory, context.workload.window, context.record_event, names, limits)
        context.detection = self._detection
        self._shown_at = float("-inf")
        self._phase: str | None = None
        self._entered_until = timeline.load_start
        self._stop: LoadEnd | None = None
        self._gap_reason = WORKER_INTERRUPTED if context.windows.last else "engine_started_late"
        self._engine_end: EngineEnd | None = None
        self._event_limit = EventLimit()
        self._lead_seconds = lead_seconds(target.is_device)
        self._refused: str | None = None
        self._committer = WindowCommitter(context, lambda moment: self._timeline.phase_at(moment), self._kept)
        self._freezes = FrozenWindows(context)
        self._silence = SilenceWatch(context, devices)
        self._is_displaced = False

    def execute(self) -> LoadOutcome:
        """Returns when the load is over, stopped, interrupted by a signal, or cannot go on."""
        try:
            outcome = self._execute()
            self._committer.finish()
            if outcome.end is LoadEnd.COMPLETED:
                self._record_interruption_at_end()
        finally:
            self._freezes.close()
        if outcome.end is not LoadEnd.INTERRUPTED:
            self._catch_up(float("inf"))
            self._detection.finish()
        return outcome

    def _execute(self) -> LoadOutcome:
        deaths, message = EngineDeaths(), ""
        while True:
            windows_before = self._context.figures.windows
            start = self._next_start()
            if start is not None:
                message = self._one_engine(start)
            else:
                self._pause(self._timeline.load_stop - self._context.run_clock.now())
            if self._refused is not None:
                return LoadOutcome(LoadEnd.FAILED, self._refused)
            if self._stop is not None:
                return LoadOutcome(self._stop)
            if self._engine_end is not None and not self._engine_end.restart:
                return LoadOutcome(LoadEnd.FAILED, message)
            if self._context.run_clock.now() >= self._timeline.load_stop - self._window_seconds * GAP_TOLERANCE:
                # Without a window there is nothing to see of it but what the engine said when it died.
                return LoadOutcome(LoadEnd.COMPLETED, "" if self._context.windows.last else message)
            deaths.add(message, self._context.figures.windows > windows_before)
            total = self._context.figures.engine_restarts
            self._may_move = False
            self._context.record_event(EventType.ENGINE, "died", message=message, restarts=total)
            if total >= self._workload.engine_restarts:
                return LoadOutcome(LoadEnd.FAILED, deaths.sentence(total + 1))
            self._context.figures.engine_restarts += 1
            self._pause(deaths.pause_seconds)
            if self._stop is not None:
                return LoadOutcome(self._stop)
            self._gap_reason = "engine_restarted"

    @property
    def _workload(self) -> Workload:
        return self._context.workload

    @property
    def _window_seconds(self) -> float:
        return self._workload.window

    def _may_start(self) -> bool:
        """The last look before an engine is started: it may have waited for a whole window since the one before."""
        try:
            self._target.require_unused()
        except Problem as problem:
            self._context.record_event(EventType.NOTE, "refused", code=problem.code.value, message=str(problem))
            self._refused = str(problem)
        return self._refused is None

    def _next_start(self) -> float | None:
        """When an engine that is started now would begin its first window; None when the load is over before."""
        ready = grid_line_at_or_after(self._context.run_clock.now() + self._lead_seconds, self._window_seconds)
        start = max(ready, self._timeline.load_start)
        self._move_load(start)
        return start if start < self._timeline.load_stop - self._window_seconds * GAP_TOLERANCE else None

    def _one_engine(self, start: float) -> str:
        """Run one engine process until it is gone; returns what it said last."""
        context = self._context
        engine_context = EngineContext(
            run_id=context.order.run_id,
            path=self._target.path,
            is_device=self._target.is_device,
            descriptor=self._target.descriptor,
            scratch=context.directory / "engine",
            window_seconds=self._window_seconds,
            start=start,
            stop=self._timeline.load_stop,
            state_directory=context.settings.state_directory,
            resumed=context.windows.last is not None or context.figures.engine_restarts > 0,
            load_start=self._timeline.load_start,
            bootstrap_servers=bootstrap_servers_of(context.order.target),
        )
        launch = self._launch(engine_context)
        if launch is None:
            return ""
        translator = context.engine.translator(context.load, engine_context)
        self._enter_phase(start)
        self._pause(start - self._lead_seconds - context.run_clock.now())
        if self._stop is not None or not self._may_start():
            return ""
        self._engine_end = None
        self._device_io.restart()
        if not context.is_virtual:
            clock = run_time_variable(context.run_clock.ahead_of_monotonic)
            launch = replace(launch, environment={**launch.environment, **clock})
        with EngineProcess(launch, translator, context.directory, context.wake_fd) as process:
            context.engine_identity = process.identity
            if self._host is not None:
                self._host.restart(process.identity.pid if process.identity else None)
            if process.identity:
                self._freezes.follow(process.identity.pid)
            self._silence.follow(process.identity, start)
            context.beat_now()
            context.record_event(EventType.ENGINE, "started", command=list(launch.command), start=start)
            self._watch(process)
            self._freezes.look()
            self._say_for_engine(is_over=process.is_left)
            status, records = process.finish()
            for record in records:
                self._take(record)
            self._record_dropped_events(self._event_limit.finish(context.run_clock.now()))
            message = process.error_text
        context.engine_identity = None
        self._freezes.follow(None)
        self._silence.follow(None, start)
        context.beat_now()
        end = self._engine_end
        if process.is_left:
            return "the engine cannot be ended"
        context.record_event(EventType.ENGINE, "exited", status=status, end=end.status if end else None)
        return failure_text(end, message, status)

    def _launch(self, engine_context: EngineContext) -> Launch | None:
        """What to start, once there is room for the engine's job files; None when a stop came first."""
        while self._stop is None:
            try:
                engine_context.scratch.mkdir(exist_ok=True)
                return self._context.engine.launch(self._context.load, engine_context)
            except OSError as error:
                if not durable.is_full(error):
                    raise
                self._pause(FULL_DISK_PAUSE_SECONDS)
        return None

    def _watch(self, process: EngineProcess) -> None:
        """Read an engine until it is gone; see that it goes when it should."""
        context = self._context
        ending = Ending(context, process, context.engine.stop_signal, self._workload.stop_grace)
        while not process.is_finished:
            records = process.poll(POLL_SECONDS, context.run_clock.now)
            # Before the windows of that time are looked at.
            self._freezes.look()
            for record in records:
                self._take(record)
            self._say_for_engine()
            self._record_dropped_events(self._event_limit.look(context.run_clock.now()))
            self._committer.write()
            context.catch_up()
            context.beat()
            self._catch_up(CATCH_UP_SECONDS)
            context.look_at_clock()
            self._look_for_stop()
            now = context.run_clock.now()
            if not self._may_move:
                self._enter_phase(min(now, self._timeline.load_stop - self._window_seconds / 2))
            overdue = self._timeline.load_stop + 2 * self._window_seconds + self._workload.stop_grace
            ending.look(self._stop is not None or now > overdue)

    def _take(self, record: EngineRecord) -> None:
        """Put one record of the engine where it belongs."""
        if isinstance(record, EngineWindow):
            self._commit(self._silence.rest_of(record))
        elif isinstance(record, EngineEvent):
            start = record.detail.get("start")
            if record.name == BEGUN and isinstance(start, int | float):
                self._move_load(min(start, self._timeline.load_stop))
                self._may_move = False
                self._silence.begin(start)
            if self._event_limit.passes(record.name, record.detail):
                self._context.record_event(EventType.ENGINE, record.name, **record.detail)
        else:
            self._engine_end = record

    def _say_for_engine(self, *, is_over: bool = False) -> None:
        """Write the windows of an engine that says nothing because its target hangs."""
        if not self._may_move and not self._context.is_virtual:
            for window in self._silence.look(self._timeline.load_stop, is_over):
                self._commit(window)

    def _record_dropped_events(self, counts: dict[str, int]) -> None:
        for name, count in counts.items():
            self._context.record_event(EventType.ENGINE, "events_dropped", of=name, count=count)

    def _move_load(self, start: float) -> None:
        """Let the load begin at `start`, if nothing of it has begun and that is later; it lasts as long as planned."""
        late = start - self._timeline.load_start
        if not self._may_move or late <= self._window_seconds * GAP_TOLERANCE:
            return
        self._timeline = self._timeline.moved_by(late)
        self._steady = self._recall_steady()
        times = {"load_start": self._timeline.load_start, "load_stop": self._timeline.load_stop}
        self._context.record_event(EventType.NOTE, MOVED_NOTE, **times, seconds=round(late, 6))
        self._context.figures.plan(self._timeline.load_start, self._timeline.load_stop)
        self._entered_until, self._phase = self._timeline.load_start, None
        self._enter_phase(start)
        if self._context.run_clock.now() < start:
            # What the drives and the host do until then is no part of the first window.
            self._device_io.restart()
            if self._host is not None and self._context.engine_identity is not None:
                self._host.restart(self._context.engine_identity.pid)

    def _commit(self, window: EngineWindow) -> None:
        self._may_move = False
        self._look_at_target()
        self._context.advance_virtual(window.end)
        if not self._freezes.leaves(window):
            self._device_io.restart()
            return
        self._device_io.since_last().add_to(window)
        if self._host is not None:
            self._host.since_last().add_to(window)
        self._committer.add(window)

    def _kept(self, window: EngineWindow, committed: JournalWindow, previous_end: float | None) -> None:
        self._look_at_steadiness(committed)
        self._enter_phase(window.start)
        self._context.figures.observe(window, committed)
        self._record_gap(self._timeline.load_start if previous_end is None else previous_end, window.start)
        self._gap_reason = NOT_REPORTED
        self._detection.take(committed)
        self._show_detection()

    def _catch_up(self, seconds: float) -> None:
        self._detection.catch_up(seconds)
        self._show_detection()

    def _show_detection(self) -> None:
        """In virtual time there are thousands of windows a second, and nobody looks at each."""
        now = SystemClock().monotonic()
        if self._context.is_virtual and now - self._shown_at < POLL_SECONDS:
            return
        self._shown_at = now
        self._context.figures.detect(self._detection.figures, self._detection.has_failed)

    def _recall_steady(self) -> SteadyWatch | None:
        """The watch over a warm-up that ends with the drive's steady state, as far as an earlier worker came."""
        phases = self._timeline.phases
        if phases.steady is None:
            return None
        watch = SteadyWatch(self._timeline.load_start + phases.warm_up, phases.steady.round)
        for window in JournalReader(self._context.directory).windows():
            if window.phase != Phase.WARM_UP or watch.feed(window) is not None:
                break
        if watch.at is not None:
            self._timeline = replace(self._timeline, steady_at=watch.at)
        return watch

    def _look_at_steadiness(self, window: JournalWindow) -> None:
        """End the warm-up when the drive is steady; record it, or a drive that was not when the time was over."""
        watch = self._steady
        if watch is None or watch.at is not None or window.phase != Phase.WARM_UP:
            return
        watch.feed(window)
        if watch.at is not None:
            self._timeline = replace(self._timeline, steady_at=watch.at)
            self._context.record_event(EventType.NOTE, "steady_state_reached", rounds=len(watch.rounds))
        elif self._timeline.phase_at(window.end) is not Phase.WARM_UP:
            self._context.record_event(EventType.NOTE, "steady_state_not_reached", why=watch.assessment().why_not)

    def _record_gap(self, start: float, end: float) -> None:
        """Record what lies between two windows, unless the freeze that it is was recorded."""
        if end - start <= self._window_seconds * GAP_TOLERANCE:
            return
        reason = JOURNAL_FULL if self._committer.lost else self._gap_reason
        if reason == NOT_REPORTED and self._freezes.explains(start, end):
            return
        self._context.record_event(EventType.GAP, reason, start=start, end=end, seconds=round(end - start, 6))

    def _record_interruption_at_end(self) -> None:
        """The gap of a load that had no time left for another window when it could have gone on."""
        last = self._context.windows.last
        if last is not None and self._gap_reason != NOT_REPORTED:
            self._record_gap(last.end, self._timeline.load_stop)

    def _enter_phase(self, moment: float) -> None:
        """Show where `moment` is in the load. A window that is committed late does not bring its phase back."""
        length = self._timeline.load_stop - self._timeline.load_start
        moment = max(moment, self._entered_until)
        self._entered_until = moment
        phase = self._timeline.phase_at(moment)
        self._context.figures.move(phase, min(1.0, max(0.0, (moment - self._timeline.load_start) / length)))
        if phase == self._phase:
            return
        self._phase = phase
        for name, start, end in self._timeline.bounds():
            if name == phase:
                self._context.record_event(EventType.PHASE, name, start=start, end=end)

    def _look_at_target(self) -> None:
        """An engine that keeps its files open does not notice when they are taken away. Said once."""
        if self._is_displaced or (displaced := self._target.displaced()) is None:
            return
        self._is_displaced = True
        self._context.record_event(EventType.NOTE, TARGET_DISPLACED, message=displaced)

    def _look_for_stop(self) -> None:
        """A signal only wakes the worker; what is wanted of it stands in the journal."""
        if self._stop is None and self._context.take_signal():
            self._stop = LoadEnd.STOPPED if self._context.status().stop_requested else LoadEnd.INTERRUPTED

    def _pause(self, seconds: float) -> None:
        """Wait on the run's clock; a stop ends it."""
        clock = self._context.run_clock
        end = clock.now() + seconds
        while self._stop is None and clock.now() < end - 1e-6:
            self._context.wait(min(POLL_SECONDS, end - clock.now()))
            self._context.beat()
            self._look_for_stop()
