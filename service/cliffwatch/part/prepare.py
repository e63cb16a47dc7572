"""Processes that run to their end before and after the load: laying out files, flushing the page cache, clearing."""

import signal

from cliffwatch.analysis.run_evidence import LoadEnd
from cliffwatch.engines.contract import Launch
from cliffwatch.journal import files
from cliffwatch.journal.events import LEFT_BEHIND, EventType
from cliffwatch.part.child_process import ChildProcess, Wake, status_text
from cliffwatch.part.context import POLL_SECONDS, PartContext
from cliffwatch.part.device_io import DeviceIo
from cliffwatch.part.ending import Ending
from cliffwatch.part.facts import collect_facts
from cliffwatch.part.lines import Flush, Flushed, Prepare, Prepared
from cliffwatch.part.target import PartTarget, clear_files, surroundings


class Unread:
    """Reader that discards stdout; the exit status decides."""

    def feed(self, chunk: bytes, received_at: float) -> list[object]:
        return []

    def finish(self, exit_status: int) -> list[object]:
        return []


def prepare(context: PartContext, target: PartTarget, command: Prepare) -> Prepared:
    """Prepare the target; the load may begin if the answer says `completed`. A stop ends it early. Raises Problem.

    The target is checked again afterwards, since preparing may have taken hours.
    """
    begun = context.run_clock.now()
    launch = context.engine.prepare(context.load, surroundings(context, target))
    if launch is not None:
        status, message = _run(context, launch, context.engine.stop_signal, context.workload.stop_grace)
        if context.inbox.is_stopped():
            return Prepared(end=LoadEnd.STOPPED)
        if status != 0:
            why = f"preparing the target failed: {message or status_text(status)}"
            return Prepared(end=LoadEnd.FAILED, message=why)
        context.record_event(EventType.ENGINE, "prepared", seconds=round(context.run_clock.now() - begun, 3))
    target.held.require_unused()
    if not command.with_facts:
        return Prepared(end=LoadEnd.COMPLETED)
    found = context.engine.facts(context.load, surroundings(context, target))
    return Prepared(end=LoadEnd.COMPLETED, facts=collect_facts(target.examination, found))


def flush(context: PartContext, target: PartTarget, command: Flush) -> Flushed:
    """Flush the target's page cache to its drives; data of brokers is not flushed.

    If the run was stopped, a drive that does not answer is waited for only for the grace period; otherwise a stop ends
    the flush.
    """
    start = context.run_clock.now()
    device_io = DeviceIo(target.counted_drives)
    descriptor = target.held.descriptor
    if target.drives and descriptor is not None and not context.hung():
        # Flush the device's own data, or the whole file system that the run's directory is on.
        scope = [] if target.held.is_device else ["--file-system"]
        launch = Launch(["sync", *scope, f"/proc/self/fd/{descriptor}"], descriptors=(descriptor,))
        _run(context, launch, signal.SIGTERM, command.grace_seconds, is_stopped=command.is_stopped)
    if moved := device_io.since_last().counters:
        context.record_event(EventType.DEVICE, "flushed", **moved, seconds=round(context.run_clock.now() - start, 3))
    return Flushed()


def clear(context: PartContext, target: PartTarget) -> None:
    """Remove what the engine made: outside the run's own directory by a process of the engine's, then its files.

    A stop does not end that process, which only its grace period limits. What could not be removed is an event, and
    never the end of the run.
    """
    launch = context.engine.clear(context.load, surroundings(context, target))
    if launch is not None:
        try:
            status, message = _run(context, launch, None, context.workload.stop_grace)
        except OSError as error:
            # Such as a journal whose disk is away, where the process would work.
            status, message = 1, str(error)
        if status != 0:
            place = str(target.examination.target)
            context.record_event(EventType.NOTE, LEFT_BEHIND, path=place, message=message or status_text(status))
    clear_files(context, target.held)


def _run(
    context: PartContext,
    launch: Launch,
    stop_signal: signal.Signals | None,
    grace_seconds: float,
    *,
    is_stopped: bool = False,
) -> tuple[int, str]:
    """Run a process to its end, or end it after a stop; returns exit status and end of its standard error."""
    inbox = context.inbox
    wake = Wake(inbox.fileno(), inbox.is_stopped)
    with ChildProcess(launch, Unread(), context.directory / files.ENGINE_LOG, wake) as process:
        context.follow(process.identity)
        ending = Ending(context, process, stop_signal, grace_seconds)
        while not process.is_finished:
            process.poll(POLL_SECONDS, context.run_clock.now)
            ending.look(is_stopped or inbox.is_stopped())
        status, _ = process.finish()
        message = process.error_text
    context.follow(None)
    return status, message
