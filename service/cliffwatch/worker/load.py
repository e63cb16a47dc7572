"""The load: engine after engine until the load's end, window after window into the journal.

An engine that dies is started again with growing pauses, a bounded number of times; what was not measured meanwhile is
a gap. A stop and an interruption both let the engine finish its window.
"""

from dataclasses import dataclass, replace

from cliffwatch.clock import SystemClock
from cliffwatch.detect.limits import parse_limit
from cliffwatch.detect.steady import SteadyWatch
from cliffwatch.detect.verdict import LoadEnd
from cliffwatch.drives.holding import HeldTarget
from cliffwatch.engines.base import EngineContext, Launch
from cliffwatch.journal import JournalReader, JournalWindow, files
from cliffwatch.journal.events import EventType
from cliffwatch.runs.specification import Workload, bootstrap_servers_of
from cliffwatch.window import EngineEnd, EngineEvent, EngineRecord, EngineWindow
from cliffwatch.worker.context import FULL_DISK_PAUSE_SECONDS, RunContext
from cliffwatch.worker.detection import CATCH_UP_SECONDS, Detection
from cliffwatch.worker.device_io import DeviceIo
from cliffwatch.worker.engine_process import EngineProcess
from cliffwatch.worker.freezes import ENGINE_FROZEN, LATE_SECONDS, Freeze, FreezeWatch
from cliffwatch.worker.host import HostConditions
from cliffwatch.worker.keeping import JOURNAL_FULL, Keeper
from cliffwatch.worker.timeline import Timeline, grid_line_at_or_after

#: Pause before an engine is started again: 1 s, then twice as long each time, at most this.
LONGEST_PAUSE_SECONDS = 30.0
#: An engine is started so long before its first window, so that it is ready when the time comes.
START_LEAD_SECONDS = 0.5
#: Part of a window that may be missing between two windows before it is called a gap.
GAP_TOLERANCE = 0.01
POLL_SECONDS = 0.25
#: Engines that tell a window late when the target stalls, so that a long window of theirs is a stall and no freeze.
STALLS_LENGTHEN = frozenset({"fio"})
#: So much of what an engine wrote to standard error goes into a failure's message.
_LAST_LINES, _LAST_CHARACTERS = 3, 500


@dataclass(frozen=True, slots=True)
class LoadOutcome:
    """`message` says why a load failed."""

    end: LoadEnd
    message: str = ""


class Load:
    """Carries the load of one run from where the journal stands to its end."""

    def __init__(self, context: RunContext, timeline: Timeline, target: HeldTarget, devices: list[str]) -> None:
        """`devices`: major:minor numbers of the drives below the target, whose counters every window carries."""
        self._context = context
        self._timeline = timeline
        self._steady = self._recall_steady()
        self._target = target
        self._device_io = DeviceIo(devices)
        # In virtual time a window lasts as long as it takes to print it; what the host does meanwhile is none of it.
        self._host = None if context.is_virtual else HostConditions()
        names = {device.major_minor: device.name for device in context.figures.devices}
        limits = [parse_limit(limit) for limit in context.workload.limits]
        self._detection = Detection(context.directory, context.workload.window, context.tell, names, limits)
        context.detection = self._detection
        self._shown_at = float("-inf")
        self._phase: str | None = None
        self._entered_until = timeline.load_start
        self._stop: LoadEnd | None = None
        self._gap_reason = "worker_interrupted" if context.windows.last else "engine_started_late"
        self._engine_end: EngineEnd | None = None
        self._keeper = Keeper(context, lambda moment: self._timeline.phase_at(moment), self._kept)
        # In virtual time nobody is kept from anything.
        self._freezes = None if context.is_virtual else FreezeWatch(context.run_clock.now)

    def carry_out(self) -> LoadOutcome:
        """Returns when the load is over, stopped, interrupted by a signal, or cannot go on."""
        try:
            outcome = self._carry_out()
            self._keeper.finish()
        finally:
            if self._freezes is not None:
                self._freezes.close()
        if outcome.end is not LoadEnd.INTERRUPTED:
            self._catch_up(float("inf"))
            self._detection.finish()
        return outcome

    def _carry_out(self) -> LoadOutcome:
        failures, message = 0, ""
        while True:
            windows_before = self._context.figures.windows
            died = message
            message = self._one_engine()
            if self._stop is not None:
                return LoadOutcome(self._stop)
            if self._engine_end is not None and not self._engine_end.restart:
                return LoadOutcome(LoadEnd.FAILED, message)
            if self._context.run_clock.now() >= self._timeline.load_stop - self._window_seconds * GAP_TOLERANCE:
                # Without a window there is nothing to see of it but what the engine said when it died.
                return LoadOutcome(LoadEnd.COMPLETED, "" if self._context.windows.last else message or died)
            # An engine that measured for a while earned its restarts back; one that dies at once is used up.
            failures = 1 if self._context.figures.windows > windows_before else failures + 1
            total = self._context.figures.engine_restarts
            self._context.tell(EventType.ENGINE, "died", message=message, restarts=total)
            if total >= self._workload.engine_restarts:
                return LoadOutcome(LoadEnd.FAILED, f"the engine died {total + 1} times; the last time: {message}")
            self._context.figures.engine_restarts += 1
            self._pause(min(LONGEST_PAUSE_SECONDS, 2.0 ** (failures - 1)))
            if self._stop is not None:
                return LoadOutcome(self._stop)
            self._gap_reason = "engine_restarted"

    @property
    def _workload(self) -> Workload:
        return self._context.workload

    @property
    def _window_seconds(self) -> float:
        return self._workload.window

    def _one_engine(self) -> str:
        """Run one engine process until it is gone; returns what it said last."""
        context = self._context
        ready = context.run_clock.now() + START_LEAD_SECONDS
        start = max(grid_line_at_or_after(ready, self._window_seconds), self._timeline.load_start)
        if start >= self._timeline.load_stop - self._window_seconds * GAP_TOLERANCE:
            context.advance_virtual(self._timeline.load_stop)
            return ""
        engine_context = EngineContext(
            run_id=context.order.run_id,
            path=self._target.path,
            is_device=self._target.is_device,
            descriptor=self._target.descriptor,
            scratch=context.directory / "engine",
            window_seconds=self._window_seconds,
            start=start,
            stop=self._timeline.load_stop,
            resumed=context.windows.last is not None or context.figures.engine_restarts > 0,
            load_start=self._timeline.load_start,
            bootstrap_servers=bootstrap_servers_of(context.order.target),
        )
        launch = self._launch(engine_context)
        if launch is None:
            return ""
        translator = context.engine.translator(context.load, engine_context)
        self._enter_phase(start)
        self._pause(start - START_LEAD_SECONDS - context.run_clock.now())
        if self._stop is not None:
            return ""
        self._engine_end = None
        self._target.check()
        self._device_io.restart()
        with EngineProcess(launch, translator, context.directory, context.wake_fd) as process:
            context.engine_identity = process.identity
            if self._host is not None:
                self._host.restart(process.identity.pid if process.identity else None)
            if self._freezes is not None and process.identity:
                self._freezes.follow(process.identity.pid)
            context.beat_now()
            context.tell(EventType.ENGINE, "started", command=list(launch.command), start=start)
            self._watch(process)
            self._look_for_freezes()
            status, records = process.finish()
            for record in records:
                self._take(record)
            message = process.error_text
        context.engine_identity = None
        for freeze in self._freezes.follow(None) if self._freezes is not None else ():
            self._tell_freeze(freeze)
        context.beat_now()
        end = self._engine_end
        context.tell(EventType.ENGINE, "exited", status=status, end=end.status if end else None)
        return failure_text(end, message, status)

    def _launch(self, engine_context: EngineContext) -> Launch | None:
        """What to start, once there is room for the engine's job files; None when a stop came first."""
        while self._stop is None:
            try:
                engine_context.scratch.mkdir(exist_ok=True)
                return self._context.engine.launch(self._context.load, engine_context)
            except OSError as error:
                if not files.is_full(error):
                    raise
                self._pause(FULL_DISK_PAUSE_SECONDS)
        return None

    def _watch(self, process: EngineProcess) -> None:
        """Read an engine until it is gone; see that it goes when it should."""
        context = self._context
        stop_asked_at: float | None = None
        overdue = self._timeline.load_stop + 2 * self._window_seconds + self._workload.stop_grace
        while not process.is_finished:
            records = process.poll(POLL_SECONDS, context.run_clock.now)
            # Before the windows of that time are looked at.
            self._look_for_freezes()
            for record in records:
                self._take(record)
            self._keeper.write()
            context.catch_up()
            context.beat()
            self._catch_up(CATCH_UP_SECONDS)
            self._look_at_clock()
            self._look_for_stop()
            now = context.run_clock.now()
            self._enter_phase(min(now, self._timeline.load_stop - self._window_seconds / 2))
            if stop_asked_at is None and (self._stop is not None or now > overdue):
                stop_asked_at = now
                process.ask_to_stop(context.engine.stop_signal)
            elif stop_asked_at is not None and now - stop_asked_at > self._workload.stop_grace:
                context.tell(EventType.ENGINE, "killed", reason="did not stop within the grace period")
                process.kill()
                stop_asked_at = float("inf")

    def _take(self, record: EngineRecord) -> None:
        """Put one record of the engine where it belongs."""
        if isinstance(record, EngineWindow):
            self._commit(record)
        elif isinstance(record, EngineEvent):
            self._context.tell(EventType.ENGINE, record.name, **record.detail)
        else:
            self._engine_end = record

    def _commit(self, window: EngineWindow) -> None:
        self._context.advance_virtual(window.end)
        if not self._was_measured(window):
            self._device_io.restart()
            return
        self._device_io.since_last().add_to(window)
        if self._host is not None:
            self._host.since_last().add_to(window)
        self._keeper.add(window)

    def _was_measured(self, window: EngineWindow) -> bool:
        """Take what was frozen of a window off what was measured of it; False when nothing of it can be believed.

        A window that is longer than the grid's step holds what was done before and after a freeze, in no proportion
        that anybody knows: it is a gap as a whole, and what it counted is recorded.
        """
        if self._freezes is None:
            return True
        length = window.end - window.start
        frozen, _ = self._freezes.within(window.start, window.end)
        tolerance = self._window_seconds * GAP_TOLERANCE
        is_long = length > 1.5 * self._window_seconds
        if frozen <= tolerance:
            # Nothing that the target does makes such an engine late: it did not run, wherever that was decided.
            late = length - self._window_seconds
            if not is_long or late < LATE_SECONDS or self._context.engine.name in STALLS_LENGTHEN:
                return True
            self._tell_freeze(Freeze(window.start + self._window_seconds, window.end, ENGINE_FROZEN))
        measured = min(window.gauges.get("measured_seconds", length), length - frozen)
        if not is_long and measured > tolerance:
            window.gauges["measured_seconds"] = round(measured, 6)
            return True
        counted = {name: window.counters.get(name, 0) for name in ("operations", "bytes", "errors")}
        self._context.tell(EventType.ENGINE, "window_dropped", start=window.start, end=window.end, **counted)
        return False

    def _tell_freeze(self, freeze: Freeze) -> None:
        detail = {"start": freeze.start, "end": freeze.end, "seconds": round(freeze.seconds, 3)}
        self._context.tell(EventType.GAP, freeze.reason, **detail)

    def _look_for_freezes(self) -> None:
        if self._freezes is None:
            return
        before = self._freezes.frozen_since
        for freeze in self._freezes.look():
            self._tell_freeze(freeze)
        since = self._freezes.frozen_since
        if since is not None and before is None:
            self._context.tell(EventType.ENGINE, "frozen", since=since)

    def _kept(self, window: EngineWindow, committed: JournalWindow, previous_end: float | None) -> None:
        self._look_at_steadiness(committed)
        self._enter_phase(window.start)
        self._context.figures.observe(window, committed)
        self._tell_gap(self._timeline.load_start if previous_end is None else previous_end, window.start)
        self._gap_reason = "not_reported_by_engine"
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
            if window.phase != "warm_up" or watch.feed(window) is not None:
                break
        if watch.at is not None:
            self._timeline = replace(self._timeline, steady_at=watch.at)
        return watch

    def _look_at_steadiness(self, window: JournalWindow) -> None:
        """End the warm-up when the drive is steady; tell of it, and of a drive that was not when the time was over."""
        watch = self._steady
        if watch is None or watch.at is not None or window.phase != "warm_up":
            return
        watch.feed(window)
        if watch.at is not None:
            self._timeline = replace(self._timeline, steady_at=watch.at)
            self._context.tell(EventType.NOTE, "steady_state_reached", rounds=len(watch.rounds))
        elif self._timeline.phase_at(window.end) != "warm_up":
            self._context.tell(EventType.NOTE, "steady_state_not_reached", why=watch.told().why_not)

    def _tell_gap(self, start: float, end: float) -> None:
        """Record what lies between two windows, unless the freeze that it is was recorded."""
        if end - start <= self._window_seconds * GAP_TOLERANCE:
            return
        reason = JOURNAL_FULL if self._keeper.lost else self._gap_reason
        if reason == "not_reported_by_engine" and self._freezes and self._freezes.within(start, end)[1]:
            return
        self._context.tell(EventType.GAP, reason, start=start, end=end, seconds=round(end - start, 6))

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
                self._context.tell(EventType.PHASE, name, start=start, end=end)

    def _look_at_clock(self) -> None:
        jump = self._context.run_clock.jump()
        if jump is not None:
            self._context.tell(EventType.CLOCK, "wall_clock_jumped", seconds=round(jump.seconds, 3))

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


def failure_text(end: EngineEnd | None, error_text: str, status: int) -> str:
    """What an engine said when it ended: its own last word, and the end of its standard error where that says more."""
    errors = "; ".join(line.strip() for line in error_text.splitlines()[-_LAST_LINES:] if line.strip())
    said = end.message if end is not None else ""
    # The engines of our own write the same there as they say at their end, behind their name.
    if errors and errors not in said and not (said and errors.endswith(said)):
        said = f"{said}; it wrote: {errors[-_LAST_CHARACTERS:]}" if said else errors[-_LAST_CHARACTERS:]
    return said or f"exit status {status}"
