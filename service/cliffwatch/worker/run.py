"""One run from where its journal stands to its end: prepare, load, cool down, report.

Every step reads what was done from the journal, so that a new worker goes on where a dead one stopped.
"""

import signal
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from time import process_time

from cliffwatch.analysis.coverage import GAP_TOLERANCE
from cliffwatch.analysis.run_evidence import LoadEnd
from cliffwatch.base import durable
from cliffwatch.base.errors import Problem
from cliffwatch.engines.contract import EngineContext, Launch
from cliffwatch.gate import Examination, HeldTarget, hold, objections_to_plan, require_clear
from cliffwatch.journal import JournalReader, ends_load, files
from cliffwatch.journal.events import EventType
from cliffwatch.journal.state import RunStatus
from cliffwatch.model.phase import Phase
from cliffwatch.model.run_state import RunState
from cliffwatch.model.target import bootstrap_servers_of
from cliffwatch.telemetry.collection import CollectionTask
from cliffwatch.worker.context import RunContext
from cliffwatch.worker.device_io import DeviceIo
from cliffwatch.worker.ending import Ending
from cliffwatch.worker.engine_process import EngineProcess
from cliffwatch.worker.facts import collect_facts
from cliffwatch.worker.load import POLL_SECONDS, WORKER_INTERRUPTED, LoadOutcome, LoadPhase
from cliffwatch.worker.prepare import Unread, prepare
from cliffwatch.worker.reporting import judge_run
from cliffwatch.worker.run_files import record_claim, remove_files
from cliffwatch.worker.series_labels import devices_below, file_systems_of
from cliffwatch.worker.target import clear, examine_again, keeps_files
from cliffwatch.worker.timeline import Timeline, lead_seconds

#: So long at least a run that was stopped lets its target write what the page cache holds, should the engine have used
#: the grace of the stop up.
LEAST_FLUSH_SECONDS = 10.0


def execute_run(context: RunContext) -> None:
    """Bring a run that is `starting` to `finished`, or return early when a signal interrupted it."""
    outcome = _load_end_in(context.directory)
    if not context.is_virtual:
        context.telemetry = _collection_of(context)
    if outcome is None:
        status = context.status()
        outcome = _prepare_and_load(context, status)
        if outcome.end is LoadEnd.INTERRUPTED:
            if context.status().state in {RunState.RUNNING, RunState.STARTING, RunState.STOPPING}:
                context.enter(RunState.INTERRUPTED, reason="the worker was ended by a signal")
            return
        if keeps_files(context, outcome):
            context.record_event(EventType.NOTE, "files_kept", target=str(context.order.target))
        else:
            was_cleared, hung = outcome.was_cleared, context.hung()
            remove_files(context.order, context.directory, context.record_event, was_cleared=was_cleared, hung=hung)
        context.record_event(
            EventType.ENGINE,
            "worker_cost",
            cpu_seconds=round(process_time(), 3),
            max_resident_bytes=_peak_memory_bytes(),
        )
        context.record_event(EventType.ENGINE, "load_ended", how=outcome.end.value, message=outcome.message)
    context.figures.move(Phase.COOL_DOWN, 1.0)
    context.enter(RunState.REPORTING)
    context.beat_now()
    _collect_the_rest(context)
    context.enter(
        RunState.FINISHED, **judge_run(context.directory, context.record_event, context.wait_beating).detail()
    )


def _peak_memory_bytes() -> int:
    """This process's own peak; getrusage would count the memory of the service that started it."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024


def _load_end_in(directory: Path) -> LoadOutcome | None:
    """How the load ended, when an earlier worker got that far."""
    outcome = None
    for stored in JournalReader(directory).events():
        if ends_load(stored.event):
            outcome = LoadOutcome(LoadEnd(stored.event.detail["how"]), str(stored.event.detail["message"]))
    return outcome


def _prepare_and_load(context: RunContext, status: RunStatus) -> LoadOutcome:
    resumed = status.load_start is not None
    if (over := _over_already(context, status, resumed)) is not None:
        return over
    with ExitStack() as held:
        try:
            if not resumed:
                context.record_event(EventType.PHASE, Phase.PREPARE)
            examination = examine_again(context)
            again = examination.path.exists()
            target = held.enter_context(hold(examination))
            record_claim(target, context.record_event)
            _require_clear_plan(context, examination, target, again)
            context.figures.settle(devices_below(examination), file_systems_of(examination, context.directory))
            files_made = _make_files(context, target, again)
        except Problem as problem:
            context.record_event(EventType.NOTE, "refused", code=problem.code.value, message=str(problem))
            return LoadOutcome(LoadEnd.FAILED, str(problem))
        if files_made.end is not LoadEnd.COMPLETED:
            return files_made
        if not resumed:
            found = context.engine.facts(context.load, _estimate(context, target, again))
            durable.write_json_durably(context.directory / files.FACTS, collect_facts(examination, found))
        timeline = _timeline(context, status, target)
        context.figures.plan(timeline.load_start, timeline.load_stop)
        try:
            context.enter(RunState.RUNNING, load_start=timeline.load_start, load_stop=timeline.load_stop)
        except Problem:
            if context.status().stop_requested:
                return LoadOutcome(LoadEnd.STOPPED)
            raise
        devices = [drive.major_minor for drive in examination.drives]
        load = LoadPhase(context, timeline, target, devices, resumed)
        try:
            outcome = load.execute()
        except Problem as problem:
            outcome = LoadOutcome(LoadEnd.FAILED, str(problem))
        if outcome.end in {LoadEnd.COMPLETED, LoadEnd.STOPPED}:
            _cool_down(context, target, devices, outcome)
        clear(context, target, outcome)
    return replace(outcome, was_cleared=True)


def _over_already(context: RunContext, status: RunStatus, resumed: bool) -> LoadOutcome | None:
    """How the load ended before this worker could do anything for it; None when there is something to do."""
    if status.stop_requested:
        return LoadOutcome(LoadEnd.STOPPED)
    if resumed and context.workload.on_interruption == "end":
        return LoadOutcome(LoadEnd.FAILED, "the worker died, and the workload says to end then")
    if not _wait_for_hung(context, status):
        return LoadOutcome(LoadEnd.STOPPED if context.status().stop_requested else LoadEnd.INTERRUPTED)
    if resumed and status.load_stop is not None and context.run_clock.now() >= status.load_stop:
        _record_absence(context, status)
        return LoadOutcome(LoadEnd.COMPLETED)
    return None


def _wait_for_hung(context: RunContext, status: RunStatus) -> bool:
    """Wait until no process of an earlier worker is on the target any more, or the load is over; False when a signal
    came first."""
    over = float("inf") if status.load_stop is None else status.load_stop
    while context.hung() and context.run_clock.now() < over:
        if context.take_signal():
            return False
        context.wait_beating(POLL_SECONDS)
    return True


def _make_files(context: RunContext, target: HeldTarget, again: bool) -> LoadOutcome:
    """Prepare the target, and look at it again: that may have taken hours. Raises Problem."""
    outcome = prepare(context, _estimate(context, target, again))
    if outcome.end is LoadEnd.COMPLETED:
        target.require_unused()
    return outcome


def _record_absence(context: RunContext, status: RunStatus) -> None:
    """The gap of a load that was over before a worker could go on with it."""
    last = context.windows.last
    start, end = status.load_start if last is None else last.end, status.load_stop
    assert start is not None, "a load that has an end has a beginning"
    assert end is not None, "only a planned load can be over"
    if end - start > context.workload.window * GAP_TOLERANCE:
        context.record_event(EventType.GAP, WORKER_INTERRUPTED, start=start, end=end, seconds=round(end - start, 6))


def _estimate(context: RunContext, target: HeldTarget, again: bool) -> EngineContext:
    """The engine's surroundings as they will be, when preparing takes no time."""
    timeline = Timeline.plan(context.run_clock.now(), context.workload.phases, context.workload.window)
    scratch = context.directory / "engine"
    scratch.mkdir(exist_ok=True)
    return EngineContext(
        run_id=context.order.run_id,
        path=target.path,
        is_device=target.is_device,
        descriptor=target.descriptor,
        scratch=scratch,
        window_seconds=context.workload.window,
        start=timeline.load_start,
        stop=timeline.load_stop,
        state_directory=context.settings.state_directory,
        resumed=again,
        bootstrap_servers=bootstrap_servers_of(context.order.target),
    )


def _require_clear_plan(context: RunContext, examination: Examination, target: HeldTarget, again: bool) -> None:
    """Let the engine's plan pass the safety gate. Raises Problem."""
    plan = context.engine.plan(context.load, _estimate(context, target, again))
    reserve_ratio = context.workload.free_space_reserve_ratio
    require_clear(objections_to_plan(examination, plan, reserve_ratio, resumed=again))


def _timeline(context: RunContext, status: RunStatus, target: HeldTarget) -> Timeline:
    """Planned anew from now, or as it was planned when the run first began."""
    phases, window = context.workload.phases, context.workload.window
    if status.load_start is not None and status.load_stop is not None:
        return Timeline(status.load_start, status.load_stop, phases)
    return Timeline.plan(context.run_clock.now() + lead_seconds(target.is_device), phases, window)


def _cool_down(context: RunContext, target: HeldTarget, devices: list[str], outcome: LoadOutcome) -> None:
    """Let the drive come to rest: flush what the page cache still holds, and say how much that was."""
    start = context.run_clock.now()
    length = context.workload.phases.cool_down if outcome.end is LoadEnd.COMPLETED else 0.0
    context.record_event(EventType.PHASE, Phase.COOL_DOWN, start=start, end=start + length)
    context.figures.move(Phase.COOL_DOWN, 1.0)
    device_io = DeviceIo(devices)
    if devices and target.descriptor is not None:
        _flush(context, target, target.descriptor, is_stopped=outcome.end is LoadEnd.STOPPED)
    if moved := device_io.since_last().counters:
        context.record_event(EventType.DEVICE, "flushed", **moved, seconds=round(context.run_clock.now() - start, 3))
    while not context.take_signal() and context.run_clock.now() < start + length:
        context.wait(min(1.0, start + length - context.run_clock.now()))
        context.beat()


def _flush(context: RunContext, target: HeldTarget, descriptor: int, *, is_stopped: bool) -> None:
    """Write what the page cache holds for the target; what brokers have not written yet is theirs to write.

    A run that was stopped does not wait for a drive that does not answer; one that was not ends when it is stopped.
    """
    if context.hung():
        return
    # A device node's own data, or the whole file system that the run's directory is on.
    scope = [] if target.is_device else ["--file-system"]
    launch = Launch(["sync", *scope, f"/proc/self/fd/{descriptor}"], descriptors=(descriptor,))
    status, grace_seconds = context.status(), context.workload.stop_grace
    if status.stop_requested:
        grace_seconds = max(LEAST_FLUSH_SECONDS, status.since + grace_seconds - context.run_clock.now())
    with EngineProcess(launch, Unread(), context.directory, context.wake_fd) as process:
        context.engine_identity = process.identity
        ending = Ending(context, process, signal.SIGTERM, grace_seconds)
        while not process.is_finished:
            process.poll(POLL_SECONDS, context.run_clock.now)
            context.beat()
            is_stopped |= context.take_signal()
            ending.look(is_stopped)
    context.engine_identity = None


def _collection_of(context: RunContext) -> CollectionTask:
    events = (stored.event for stored in JournalReader(context.directory).events())
    return CollectionTask(
        context.directory, context.settings.prometheus_url, context.workload.window, context.record_event, events
    )


def _collect_the_rest(context: RunContext) -> None:
    """What Prometheus has of the load's last minutes, before the report is made of it."""

    if context.telemetry is not None and context.status().load_start is not None:
        context.telemetry.finish(context.run_clock.now, context.wait_beating)
        context.telemetry = None
