"""One run from where its journal stands to its end: prepare, load, cool down, report.

Every step reads what was done from the journal, so that a new worker goes on where a dead one stopped.
"""

import subprocess
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from time import process_time

from cliffwatch.analysis.coverage import GAP_TOLERANCE
from cliffwatch.analysis.verdict import LoadEnd
from cliffwatch.base import durable
from cliffwatch.base.errors import Problem
from cliffwatch.engines.contract import EngineContext
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
from cliffwatch.worker.facts import collect_facts
from cliffwatch.worker.load import WORKER_INTERRUPTED, LoadOutcome, LoadPhase
from cliffwatch.worker.prepare import prepare
from cliffwatch.worker.reporting import judge_run
from cliffwatch.worker.run_files import record_claim, remove_files
from cliffwatch.worker.series_labels import devices_below, file_systems_of
from cliffwatch.worker.target import clear, examine_again, keeps_files
from cliffwatch.worker.timeline import Timeline, lead_seconds


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
            was_cleared = outcome.was_cleared
            remove_files(context.order, context.directory, context.record_event, was_cleared=was_cleared)
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
    if status.stop_requested:
        return LoadOutcome(LoadEnd.STOPPED)
    if resumed and context.workload.on_interruption == "end":
        return LoadOutcome(LoadEnd.FAILED, "the worker died, and the workload says to end then")
    if resumed and status.load_stop is not None and context.run_clock.now() >= status.load_stop:
        _record_absence(context, status)
        return LoadOutcome(LoadEnd.COMPLETED)
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
        # What brokers have not written yet is theirs to write. Else a device node's own data, or the whole file system
        # that the run's directory is on.
        scope = [] if target.is_device else ["--file-system"]
        command = ["sync", *scope, f"/proc/self/fd/{target.descriptor}"]
        subprocess.run(command, check=False, stdin=subprocess.DEVNULL, pass_fds=(target.descriptor,))
    if moved := device_io.since_last().counters:
        context.record_event(EventType.DEVICE, "flushed", **moved, seconds=round(context.run_clock.now() - start, 3))
    while not context.take_signal() and context.run_clock.now() < start + length:
        context.wait(min(1.0, start + length - context.run_clock.now()))
        context.beat()


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
