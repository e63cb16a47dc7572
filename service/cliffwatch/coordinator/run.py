"""Execute one run from the state in its journal to its end: prepare, load, cool down, report.

Every step reads what was done from the journal, so that a new worker goes on where a dead one stopped.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from cliffwatch.analysis.coverage import GAP_TOLERANCE
from cliffwatch.analysis.run_evidence import LoadEnd
from cliffwatch.base import durable
from cliffwatch.base.errors import Problem
from cliffwatch.coordinator.context import RunContext
from cliffwatch.coordinator.drive_wear import DriveWear
from cliffwatch.coordinator.load import WORKER_INTERRUPTED, LoadOutcome, LoadPhase
from cliffwatch.coordinator.metrics import RunFileSystem
from cliffwatch.coordinator.place import Place
from cliffwatch.coordinator.remote_drives import MISSING, RemoteDrives, drive_facts, drive_of
from cliffwatch.coordinator.reporting import judge_run
from cliffwatch.coordinator.run_files import remove_files
from cliffwatch.coordinator.run_parts import POLL_SECONDS, PartLeftError, RunParts
from cliffwatch.journal import JournalReader, ends_load, files
from cliffwatch.journal.events import LEFT_BEHIND, EventType
from cliffwatch.journal.state import RunStatus
from cliffwatch.machine.mounts import mount_of
from cliffwatch.model.part_names import ONLY_PART
from cliffwatch.model.phase import Phase
from cliffwatch.model.request import AskedTarget, Submission
from cliffwatch.model.run_state import RunState
from cliffwatch.model.target import AnyTarget, PostgresTarget
from cliffwatch.model.timeline import Timeline, lead_seconds
from cliffwatch.part.context import own_cost
from cliffwatch.part.lines import Clear, Cleared, DriveBelow, Flush, Flushed, Held, Order, Prepare, Prepared
from cliffwatch.telemetry.address import address_of
from cliffwatch.telemetry.catalogue import any_of
from cliffwatch.telemetry.collection import CollectionTask
from cliffwatch.telemetry.drive_health import DriveSource
from cliffwatch.telemetry.drives import RemoteDrive, find_drives

#: Least time that a stopped run has to flush the page cache, even if the engine used up the grace period of the stop.
LEAST_FLUSH_SECONDS = 10.0
#: Additional lead time when several parts begin together.
_TOGETHER_SECONDS = 2.0
#: Keys of facts.json that differ between the parts of a machine.
_OF_TARGET = ("target", "file_system", "device", "engine")


def execute_run(context: RunContext, place: Place) -> None:
    """Execute a run from `starting` to `finished`; returns early when a signal interrupts it."""
    outcome = _load_end_in(context.directory)
    if not context.is_virtual:
        context.telemetry = _collection_of(context)
    if outcome is None:
        status = context.status()
        outcome = _prepare_and_load(context, status, place)
        if outcome.end is LoadEnd.INTERRUPTED:
            if context.status().state in {RunState.RUNNING, RunState.STARTING, RunState.STOPPING}:
                context.enter(RunState.INTERRUPTED, reason="the worker was ended by a signal")
            return
        _clear_databases(context, outcome, place)
        if keeps_files(context, outcome):
            context.record_event(EventType.NOTE, "files_kept", target=str(context.order.target))
        else:
            was_cleared, hung = outcome.was_cleared, context.hung()
            remove_files(context.order, context.directory, context.record_event, was_cleared=was_cleared, hung=hung)
        _record_cost(context)
        context.record_event(EventType.ENGINE, "load_ended", how=outcome.end.value, message=outcome.message)
    context.figures.move(Phase.COOL_DOWN, 1.0)
    context.enter(RunState.REPORTING)
    context.beat_now()
    _collect_the_rest(context)
    context.enter(
        RunState.FINISHED, **judge_run(context.directory, context.record_event, context.wait_beating).detail()
    )


def _record_cost(context: RunContext) -> None:
    """Record monitoring overhead: CPU time and memory of this process and the parts, without the engines."""
    cpu_seconds, resident_bytes = own_cost()
    for cost in context.part_costs:
        cpu_seconds += cost.cpu_seconds
        resident_bytes += cost.max_resident_bytes
    detail = {"cpu_seconds": round(cpu_seconds, 3), "max_resident_bytes": resident_bytes}
    context.record_event(EventType.ENGINE, "worker_cost", **detail)


def _load_end_in(directory: Path) -> LoadOutcome | None:
    """How the load ended under an earlier worker; None if it has not ended."""
    outcome = None
    for stored in JournalReader(directory).events():
        if ends_load(stored.event):
            outcome = LoadOutcome(LoadEnd(stored.event.detail["how"]), str(stored.event.detail["message"]))
    return outcome


def _prepare_and_load(context: RunContext, status: RunStatus, place: Place) -> LoadOutcome:
    resumed = status.load_start is not None
    if (over := _over_already(context, status, resumed)) is not None:
        return over
    with RunParts(context, place) as parts:
        outcome = _load_on(context, status, parts, resumed)
        # A part that no longer answers has been abandoned already; the load's outcome stays.
        with suppress(PartLeftError):
            context.part_costs = parts.close()
    return outcome


def _load_on(context: RunContext, status: RunStatus, parts: RunParts, resumed: bool) -> LoadOutcome:
    """Claim the targets, prepare them, load them, and leave them clean. Raises PartEndedError."""
    if not resumed:
        context.record_event(EventType.PHASE, Phase.PREPARE)
    stopped = _StopWatch(context)
    try:
        held = parts.ask(_orders(context), Held, stopped)
        elsewhere = _drives_elsewhere(context)
        several = len(held) > 1
        drives = [replace(drive, part=part if several else "") for part, each in held.items() for drive in each.drives]
        if elsewhere is not None:
            drives = [DriveBelow(drive.name, None, drive.number, drive.instance) for drive in elsewhere]
        context.figures.settle(tuple(drives), file_systems_of(held.values(), context.directory))
        prepared = parts.ask(Prepare(with_facts=not resumed), Prepared, stopped)
    except Problem as problem:
        context.record_event(EventType.NOTE, "refused", code=problem.code.value, message=str(problem))
        return LoadOutcome(LoadEnd.FAILED, str(problem))
    except PartLeftError:
        assert stopped.end is not None, "a part is left after a stop"
        return LoadOutcome(stopped.end)
    if stopped.end is not None:
        return LoadOutcome(stopped.end)
    failed = [f"{part}: {each.message}" for part, each in prepared.items() if each.end is not LoadEnd.COMPLETED]
    if failed:
        return LoadOutcome(LoadEnd.FAILED, "; ".join(failed).removeprefix(f"{ONLY_PART}: "))
    facts = {part: each.facts for part, each in prepared.items() if each.facts is not None}
    if facts:
        together = facts_together(facts)
        if elsewhere is not None:
            together |= {"device": None, "drives": [drive_facts(drive) for drive in elsewhere]}
        durable.write_json_durably(context.directory / files.FACTS, together)
    timeline = _timeline(context, status, held)
    context.figures.plan(timeline.load_start, timeline.load_stop)
    try:
        context.enter(RunState.RUNNING, load_start=timeline.load_start, load_stop=timeline.load_stop)
    except Problem:
        if context.status().stop_requested:
            return LoadOutcome(LoadEnd.STOPPED)
        raise
    counted = {part: [] if elsewhere is not None else each.drives for part, each in held.items()}
    numbers = {part: [drive.major_minor for drive in each] for part, each in counted.items()}
    with _watching(context, elsewhere) as watched, _wear(context, drives) as wear:
        outcome = LoadPhase(context, timeline, parts, numbers, watched, wear, resumed).execute()
    try:
        _leave_clean(context, parts, outcome)
    except PartLeftError:
        return outcome
    return replace(outcome, was_cleared=True)


def _clear_databases(context: RunContext, outcome: LoadOutcome, place: Place) -> None:
    """Have parts drop what the run made in databases, where none did: the load did not begin, or was over before a
    worker came back."""
    if outcome.was_cleared or not any(isinstance(each, PostgresTarget) for each in context.order.parts.values()):
        return
    stopped = _StopWatch(context)
    try:
        with RunParts(context, place) as parts, suppress(PartLeftError):
            parts.ask(_orders(context), Held, stopped)
            parts.ask(Clear(), Cleared, stopped)
            context.part_costs = parts.close()
    except Problem as problem:
        context.record_event(EventType.NOTE, LEFT_BEHIND, path=str(context.order.target), message=str(problem))


def _drives_elsewhere(context: RunContext) -> list[RemoteDrive] | None:
    """Drives of other hosts to watch through Prometheus; None if the run watches the drives below its targets.

    A resumed run keeps the drives that it began with. Raises Problem.
    """
    if context.order.drives is None:
        return None
    known = JournalReader(context.directory).facts().get("drives")
    if known:
        return [drive_of(each) for each in known]
    asked = context.order.drives
    found = find_drives(address_of(context.settings, asked.server), asked.selector, context.clock)
    if trouble := found.clock_trouble(context.workload.window):
        context.record_event(EventType.NOTE, "drives_clock_off", message=trouble)
    return found.drives


@contextmanager
def _watching(context: RunContext, elsewhere: list[RemoteDrive] | None) -> Iterator[RemoteDrives | None]:
    asked, server = context.order.drives, None
    try:
        server = None if asked is None else address_of(context.settings, asked.server)
    except Problem as problem:
        # The server was known when the run began; a resumed run continues without it.
        names = [drive.name for drive in elsewhere or ()]
        context.record_event(EventType.NOTE, MISSING, drives=names, reason=str(problem))
    if elsewhere is None or asked is None or server is None:
        yield None
        return
    with RemoteDrives(server, asked.selector, elsewhere, context.workload.window, context.run_clock.now) as drives:
        yield drives


def _wear(context: RunContext, drives: Sequence[DriveBelow]) -> DriveWear:
    """Write amplification of the run's drives; in virtual time, and where no Prometheus is known, of none."""
    numbers = {} if context.is_virtual else {drive.name: str(drive.id) for drive in drives}
    asked = context.order.drives
    selector = asked.selector if asked is not None else f'job="drive",device=~{any_of(list(numbers))}'
    try:
        source = DriveSource.of(context.settings, asked)
    except Problem:
        # A server that is not known any more: `_watching` records that.
        source = DriveSource(None)
    return DriveWear(source, selector, numbers, context.run_clock.now)


def _leave_clean(context: RunContext, parts: RunParts, outcome: LoadOutcome) -> None:
    """Cool down, and remove the engine's files. Raises PartLeftError, PartEndedError."""
    if outcome.end in {LoadEnd.COMPLETED, LoadEnd.STOPPED}:
        _cool_down(context, parts, outcome)
    if outcome.end is not LoadEnd.INTERRUPTED and not keeps_files(context, outcome):
        parts.ask(Clear(), Cleared, _StopWatch(context))


class _StopWatch:
    """Check for a signal before and after the load; `end`: whether it stops or interrupts the run, None without one."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self.end: LoadEnd | None = None

    def __call__(self) -> bool:
        if self.end is None and self._context.take_signal():
            self.end = LoadEnd.STOPPED if self._context.status().stop_requested else LoadEnd.INTERRUPTED
        return self.end is not None


def _orders(context: RunContext) -> dict[str, Order]:
    first = next(JournalReader(context.directory).events())
    submission = Submission.from_detail(first.event.detail, str(context.order.target))
    parts = context.order.parts
    # A journal that no service began has no identities of targets.
    asked = dict(zip(parts, submission.asked, strict=False))
    return {part: _order(context, part, target, asked.get(part, AskedTarget())) for part, target in parts.items()}


def _order(context: RunContext, part: str, target: AnyTarget, asked: AskedTarget) -> Order:
    directory = context.directory
    if part != ONLY_PART:
        directory = directory / files.PARTS / part
        directory.mkdir(parents=True, exist_ok=True)
    return Order(
        run=context.order.model_copy(update={"target": target, "more_targets": (), "part_names": ()}),
        directory=directory,
        state_directory=context.settings.state_directory,
        asked_path=asked.path,
        asked_directory=asked.directory,
        asked_blocks=asked.blocks,
        virtual_start=context.run_clock.now() if context.is_virtual else None,
        ahead_of_monotonic_seconds=0.0 if context.is_virtual else context.run_clock.ahead_of_monotonic,
    )


def facts_together(facts: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """facts.json of a run, from the facts of its parts. A single part's facts stay as they are. With several, `drives`
    and `warnings` are those of all parts, `parts` has the facts of each target, and the rest is the first part's."""
    first = next(iter(facts.values()))
    if len(facts) == 1:
        return first
    drives = [{**drive, "part": part} for part, each in facts.items() for drive in each["drives"]]
    own = {part: {name: each[name] for name in _OF_TARGET} for part, each in facts.items()}
    warnings = [f"{part}: {warning}" for part, each in facts.items() for warning in each["warnings"]]
    return {**first, "drives": drives, "warnings": warnings, "parts": own}


def file_systems_of(held: Iterable[Held], journal: Path) -> tuple[RunFileSystem, ...]:
    """File systems that the run's load and its journal fill. The journal's is left out if it cannot be determined."""
    mount_points = dict.fromkeys(each.mount_point for each in held if each.mount_point is not None)
    found = [RunFileSystem(mount_point, "target") for mount_point in mount_points]
    try:
        found.append(RunFileSystem(str(mount_of(journal).mount_point), "journal"))
    except OSError:
        # The journal's mount is gone; writing to the journal reports that.
        return tuple(found)
    return tuple(found)


def keeps_files(context: RunContext, outcome: LoadOutcome) -> bool:
    """Whether to keep the engine's files for inspection: the workload sets `keep_files`, and the load failed."""
    return outcome.end is LoadEnd.FAILED and getattr(context.load, "keep_files", False)


def _over_already(context: RunContext, status: RunStatus, resumed: bool) -> LoadOutcome | None:
    """Outcome of a load that needs no work from this worker, such as a stopped one; None if there is load to make."""
    last = context.windows.last
    if last is not None and status.load_stop is not None and last.end > status.load_stop - context.workload.window / 2:
        # Also where a stop was requested after it, and the worker that was to record its end was killed.
        return LoadOutcome(LoadEnd.COMPLETED)
    if status.stop_requested:
        return LoadOutcome(LoadEnd.STOPPED)
    if resumed and context.workload.on_interruption == "end":
        return LoadOutcome(LoadEnd.FAILED, "the worker died, and the workload says to end then")
    if not _wait_for_hung(context, status):
        return LoadOutcome(LoadEnd.STOPPED if context.status().stop_requested else LoadEnd.INTERRUPTED)
    is_over = resumed and status.load_stop is not None and context.run_clock.now() >= status.load_stop
    # What was missed of a load that others make can still be read.
    if is_over and not context.engine.reads_history:
        _record_absence(context, status)
        return LoadOutcome(LoadEnd.COMPLETED)
    return None


def _wait_for_hung(context: RunContext, status: RunStatus) -> bool:
    """Wait until the hung processes of earlier workers have ended, or the load's planned end; returns False when a
    signal came first."""
    over = float("inf") if status.load_stop is None else status.load_stop
    while context.hung() and context.run_clock.now() < over:
        if context.take_signal():
            return False
        context.wait_beating(POLL_SECONDS)
    return True


def _record_absence(context: RunContext, status: RunStatus) -> None:
    """Record the gap up to the end of a load that was over before a worker could continue it."""
    last = context.windows.last
    start, end = status.load_start if last is None else last.end, status.load_stop
    assert start is not None, "a load that has an end has a beginning"
    assert end is not None, "only a planned load can be over"
    if end - start > context.workload.window * GAP_TOLERANCE:
        context.record_event(EventType.GAP, WORKER_INTERRUPTED, start=start, end=end, seconds=round(end - start, 6))


def _timeline(context: RunContext, status: RunStatus, held: Mapping[str, Held]) -> Timeline:
    """Timeline of the load: as first planned, or planned from now when the run has none yet."""
    phases, window = context.workload.phases, context.workload.window
    if status.load_start is not None and status.load_stop is not None:
        return Timeline(status.load_start, status.load_stop, phases)
    lead = lead_seconds(any(each.is_device for each in held.values()))
    # Several parts begin together, however long the start of each engine takes.
    together = 0.0 if len(held) == 1 else _TOGETHER_SECONDS
    return Timeline.plan(context.run_clock.now() + lead + together, phases, window)


def _cool_down(context: RunContext, parts: RunParts, outcome: LoadOutcome) -> None:
    """Cool down: parts flush their target's page cache and record how much that was; then wait for the phase's end."""
    start, is_stopped = context.run_clock.now(), outcome.end is LoadEnd.STOPPED
    length = 0.0 if is_stopped else context.workload.phases.cool_down
    context.record_event(EventType.PHASE, Phase.COOL_DOWN, start=start, end=start + length)
    context.figures.move(Phase.COOL_DOWN, 1.0)
    grace_seconds = context.workload.stop_grace
    if is_stopped:
        grace_seconds = max(LEAST_FLUSH_SECONDS, context.status().since + grace_seconds - start)
    stopped = _StopWatch(context)
    parts.ask(Flush(is_stopped=is_stopped, grace_seconds=grace_seconds), Flushed, stopped)
    while not stopped() and context.run_clock.now() < start + length:
        context.wait(min(1.0, start + length - context.run_clock.now()))
        context.beat()


def _collection_of(context: RunContext) -> CollectionTask:
    events = (stored.event for stored in JournalReader(context.directory).events())
    return CollectionTask(
        context.directory, context.settings.prometheus_url, context.workload.window, context.record_event, events
    )


def _collect_the_rest(context: RunContext) -> None:
    """Collect the telemetry of the load's last minutes from Prometheus, before the report is made of it."""

    if context.telemetry is not None and context.status().load_start is not None:
        context.telemetry.finish(context.run_clock.now, context.wait_beating)
        context.telemetry = None
