"""Load stage of a run: commit the windows of its parts to the journal, with phases, gaps and findings."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

from cliffwatch.analysis.coverage import GAP_TOLERANCE
from cliffwatch.analysis.journal_series import STARTED_LATE
from cliffwatch.analysis.run_evidence import LoadEnd
from cliffwatch.analysis.steady_state import SteadyWatch
from cliffwatch.base.clock import SystemClock
from cliffwatch.base.errors import Problem
from cliffwatch.coordinator.commit import JOURNAL_FULL, WindowCommitter
from cliffwatch.coordinator.context import RunContext
from cliffwatch.coordinator.detection import CATCH_UP_SECONDS, Detection
from cliffwatch.coordinator.drive_wear import DriveWear
from cliffwatch.coordinator.part_journals import PartJournals, windows_since
from cliffwatch.coordinator.part_windows import PartWindows
from cliffwatch.coordinator.remote_drives import RemoteDrives
from cliffwatch.coordinator.run_parts import ANSWER_SECONDS, POLL_SECONDS, PartLeftError, RunParts
from cliffwatch.journal import JournalReader, JournalWindow
from cliffwatch.journal.events import EventType
from cliffwatch.journal.state import MOVED_NOTE
from cliffwatch.model.limits import parse_limit
from cliffwatch.model.phase import Phase
from cliffwatch.model.timeline import Timeline
from cliffwatch.model.window import NOTHING_PRINTED, EngineWindow
from cliffwatch.part.freezes import ENGINE_FROZEN, WORKER_FROZEN
from cliffwatch.part.lines import Answer, EngineAt, Happened, Load, Loaded, Moved, Record, Refused

#: Reasons of a gap between windows: the default, and the reason after the last window of an earlier worker.
NOT_REPORTED, WORKER_INTERRUPTED = "not_reported_by_engine", "worker_interrupted"
_FREEZES = frozenset({ENGINE_FROZEN, WORKER_FROZEN})
#: Freezes that are remembered. Windows come in order, so older freezes do not overlap later windows.
_REMEMBERED = 100


@dataclass(frozen=True, slots=True)
class LoadOutcome:
    """How a load ended. `message`: why it failed. `was_cleared`: the clean-up was tried while the target was held."""

    end: LoadEnd
    message: str = ""
    was_cleared: bool = False


def _together(loaded: Mapping[str, Loaded]) -> Loaded:
    """Outcome of a run's load from the outcomes of its parts: a failed part fails the run, a stopped part stops it."""
    if len(loaded) == 1:
        return next(iter(loaded.values()))
    failed = [f"{part}: {each.message}" for part, each in loaded.items() if each.end is LoadEnd.FAILED]
    if failed:
        return Loaded(end=LoadEnd.FAILED, message="; ".join(failed))
    said = "; ".join(f"{part}: {each.message}" for part, each in loaded.items() if each.message)
    is_stopped = any(each.end is LoadEnd.STOPPED for each in loaded.values())
    return Loaded(end=LoadEnd.STOPPED if is_stopped else LoadEnd.COMPLETED, message=said)


def _merging_of(context: RunContext, timeline: Timeline, drives: dict[str, list[str]]) -> PartWindows:
    """Merger of part windows, filled with the windows that an earlier worker received and did not merge."""
    last = context.windows.last
    until = timeline.load_start if last is None else last.end
    merging = PartWindows(drives, context.workload.window, until)
    for part in drives:
        for window in windows_since(context.directory, part, until):
            merging.take(part, window)
    return merging


class LoadPhase:
    """Load of one run: continues from the state in the journal to the end of the load."""

    def __init__(
        self,
        context: RunContext,
        timeline: Timeline,
        parts: RunParts,
        drives: dict[str, list[str]],
        elsewhere: RemoteDrives | None,
        wear: DriveWear,
        resumed: bool,
    ) -> None:
        """`drives`: numbers of the drives below each part's target. `elsewhere`: drives of other hosts to watch."""
        #: Until the run's first engine begins, the load's start may still be moved; never when the run is resumed.
        #: Several parts begin together, so their load is not moved: a late part leaves a gap in its share.
        self._may_move = not resumed and len(parts.names) == 1
        self._resumed = resumed
        self._context = context
        self._timeline = timeline
        self._parts = parts
        self._elsewhere = elsewhere
        self._wear = wear
        self._merging = _merging_of(context, timeline, drives) if len(parts.names) > 1 else None
        self._journals = PartJournals(context.directory, parts.names if self._merging else (), timeline.load_start)
        self._steady = self._recall_steady()
        names = {str(device.id): device.name for device in context.figures.devices}
        limits = [parse_limit(limit) for limit in context.workload.limits]
        self._detection = Detection(context.directory, context.workload.window, context.record_event, names, limits)
        context.detection = self._detection
        self._shown_at = float("-inf")
        #: When the newest window came, or this phase began.
        self._heard_at = context.run_clock.now()
        self._phase: str | None = None
        self._entered_until = timeline.load_start
        self._stop: LoadEnd | None = None
        self._gap_reason = WORKER_INTERRUPTED if context.windows.last else STARTED_LATE
        self._committer = WindowCommitter(context, lambda moment: self._timeline.phase_at(moment), self._kept)
        #: Start and end of recent freezes; the end of a freeze that lasts is infinite.
        self._freezes: deque[tuple[float, float]] = deque(maxlen=_REMEMBERED)

    def execute(self) -> LoadOutcome:
        """Execute the load: returns when it is over, stopped, interrupted by a signal, or cannot go on.

        Raises PartEndedError.
        """
        try:
            outcome = self._execute()
        finally:
            self._journals.close()
        self._merge(float("inf"))
        self._committer.finish()
        if outcome.end is LoadEnd.COMPLETED:
            self._record_interruption_at_end()
        if outcome.end is not LoadEnd.INTERRUPTED:
            self._catch_up(float("inf"))
            self._detection.finish()
        return outcome

    def _execute(self) -> LoadOutcome:
        timeline, last = self._timeline, self._context.windows.last
        command = Load(
            start=timeline.load_start,
            stop=timeline.load_stop,
            may_move=self._may_move,
            resumed=last is not None,
            restarts=self._context.figures.engine_restarts,
            reported_until=None if last is None else last.end,
        )
        if not self._resumed:
            self._enter_phase(timeline.load_start)
        try:
            loaded = _together(self._parts.ask(command, Loaded, self._look, self._take))
        except Problem as problem:
            return LoadOutcome(LoadEnd.FAILED, str(problem))
        except PartLeftError:
            return LoadOutcome(self._stop or LoadEnd.COMPLETED)
        if loaded.end is LoadEnd.STOPPED:
            # Without a stop request, the load was overdue and therefore ended.
            return LoadOutcome(self._stop or LoadEnd.COMPLETED)
        if loaded.end is LoadEnd.COMPLETED and self._context.windows.last:
            return LoadOutcome(LoadEnd.COMPLETED)
        return LoadOutcome(loaded.end, loaded.message)

    @property
    def _window_seconds(self) -> float:
        return self._context.workload.window

    def _look(self) -> bool:
        """Do the periodic work of the load, several times a second; returns whether the load must end now."""
        context, timeline = self._context, self._timeline
        self._committer.write()
        context.catch_up()
        self._catch_up(CATCH_UP_SECONDS)
        context.look_at_clock()
        self._look_for_stop()
        if self._elsewhere is not None and (found := self._elsewhere.look()) is not None:
            context.record_event(EventType.NOTE, found[0], **found[1])
        now = context.run_clock.now()
        self._merge(now)
        if not self._may_move:
            self._enter_phase(min(now, timeline.load_stop - self._window_seconds / 2))
        due = max(timeline.load_stop, self._heard_at) if context.engine.reads_history else timeline.load_stop
        overdue = due + 2 * self._window_seconds + context.workload.stop_grace + ANSWER_SECONDS
        return self._stop is not None or now > overdue

    def _take(self, part: str, record: Record | Answer) -> None:
        """Process one record of a part."""
        if isinstance(record, EngineWindow):
            self._may_move, self._heard_at = False, self._context.run_clock.now()
            self._context.advance_virtual(record.end)
            self._take_window(part, record)
        elif isinstance(record, Loaded | Refused) and self._merging is not None:
            self._merging.end(part)
        elif isinstance(record, Moved):
            self._move_load(record.start)
            self._may_move &= not record.begun
        elif isinstance(record, EngineAt):
            if record.start is not None and not self._may_move:
                self._enter_phase(record.start)
        elif isinstance(record, Happened):
            self._notice(record)

    def _take_window(self, part: str, window: EngineWindow) -> None:
        if self._merging is None:
            self._add(window)
            return
        self._journals.append(part, window, self._timeline.phase_at(window.start))
        if not self._merging.take(part, window):
            counted = {name: window.counters.get(name, 0) for name in ("operations", "bytes", "errors")}
            span = {"start": window.start, "end": window.end}
            self._context.record_event(EventType.ENGINE, "window_dropped", **span, **counted, part=part)

    def _merge(self, now: float) -> None:
        """Commit the merged windows that are complete, or overdue at `now`.

        In virtual time no window is overdue, since each part has a clock of its own.
        """
        if self._merging is not None:
            for window in self._merging.due(float("-inf") if self._context.is_virtual else now):
                self._add(window)

    def _add(self, window: EngineWindow) -> None:
        if self._elsewhere is not None:
            self._elsewhere.add_to(window)
        self._wear.add_to(window)
        self._committer.add(window)

    def _notice(self, event: Happened) -> None:
        if event.type is EventType.ENGINE and event.name == "died":
            self._may_move = False
            self._gap_reason = "engine_restarted"
            used_up = int(event.detail["restarts"])
            self._context.figures.engine_restarts = min(used_up + 1, self._context.workload.engine_restarts)
        elif event.type is EventType.ENGINE and event.name == NOTHING_PRINTED:
            self._gap_reason = NOTHING_PRINTED
        elif event.type is EventType.ENGINE and event.name == "frozen":
            self._freezes.append((float(event.detail["since"]), float("inf")))
        elif event.type is EventType.GAP and event.name in _FREEZES:
            if self._freezes and self._freezes[-1][1] == float("inf"):
                self._freezes.pop()
            self._freezes.append((float(event.detail["start"]), float(event.detail["end"])))

    def _move_load(self, start: float) -> None:
        """Move the load's start to `start`, if that is later than planned; the load's length stays the same."""
        late = start - self._timeline.load_start
        if late <= self._window_seconds * GAP_TOLERANCE:
            return
        self._timeline = self._timeline.moved_by(late)
        self._steady = self._recall_steady()
        times = {"load_start": self._timeline.load_start, "load_stop": self._timeline.load_stop}
        self._context.record_event(EventType.NOTE, MOVED_NOTE, **times, seconds=round(late, 6))
        self._context.figures.plan(self._timeline.load_start, self._timeline.load_stop)
        self._entered_until, self._phase = self._timeline.load_start, None
        self._enter_phase(start)

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
        """Update detection's metrics; in virtual time, with thousands of windows a second, not for each window."""
        now = SystemClock().monotonic()
        if self._context.is_virtual and now - self._shown_at < POLL_SECONDS:
            return
        self._shown_at = now
        self._context.figures.detect(self._detection.figures, self._detection.has_failed)

    def _recall_steady(self) -> SteadyWatch | None:
        """Detector of the steady state that ends the warm-up, fed with earlier windows; None if not configured."""
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
        """End the warm-up when the drive is steady, and record that, or that the warm-up ended without steady state."""
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
        """Record the gap between two windows, unless a recorded freeze explains it."""
        if end - start <= self._window_seconds * GAP_TOLERANCE:
            return
        reason = JOURNAL_FULL if self._committer.lost else self._gap_reason
        if reason == NOT_REPORTED and any(frozen < end and thawed > start for frozen, thawed in self._freezes):
            return
        self._context.record_event(EventType.GAP, reason, start=start, end=end, seconds=round(end - start, 6))

    def _record_interruption_at_end(self) -> None:
        """Record the gap up to the end of a load that was interrupted too late for another window, or for any."""
        last = self._context.windows.last
        known = {NOT_REPORTED} if last is not None else {NOT_REPORTED, STARTED_LATE}
        if self._gap_reason not in known:
            self._record_gap(self._timeline.load_start if last is None else last.end, self._timeline.load_stop)

    def _enter_phase(self, moment: float) -> None:
        """Set the phase and progress metrics to their values at `moment`, and record a new phase.

        A window that is committed late does not set the metrics back.
        """
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

    def _look_for_stop(self) -> None:
        """Check the journal for a stop request: a signal only wakes the worker."""
        if self._stop is None and self._context.take_signal():
            self._stop = LoadEnd.STOPPED if self._context.status().stop_requested else LoadEnd.INTERRUPTED
