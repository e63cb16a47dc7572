"""What must be done on the target before the load can begin, such as laying out files."""

from cliffwatch.analysis.run_evidence import LoadEnd
from cliffwatch.engines.contract import EngineContext
from cliffwatch.journal.events import EventType
from cliffwatch.model.window import EngineRecord
from cliffwatch.worker.context import RunContext
from cliffwatch.worker.ending import Ending
from cliffwatch.worker.engine_process import EngineProcess, status_text
from cliffwatch.worker.load import POLL_SECONDS, LoadOutcome


class Unread:
    """What is judged by its exit status; its output is not read."""

    def feed(self, chunk: bytes, received_at: float) -> list[EngineRecord]:
        return []

    def finish(self, exit_status: int) -> list[EngineRecord]:
        return []


def prepare(context: RunContext, engine_context: EngineContext) -> LoadOutcome:
    """`completed` when the load may begin; a stop and an interruption end the preparing. Raises Problem."""
    launch = context.engine.prepare(context.load, engine_context)
    if launch is None:
        return LoadOutcome(LoadEnd.COMPLETED)
    begun = context.run_clock.now()
    stopped: LoadEnd | None = None
    with EngineProcess(launch, Unread(), context.directory, context.wake_fd) as process:
        context.engine_identity = process.identity
        ending = Ending(context, process, context.engine.stop_signal, context.workload.stop_grace)
        while not process.is_finished:
            process.poll(POLL_SECONDS, context.run_clock.now)
            context.beat()
            if stopped is None and context.take_signal():
                stopped = LoadEnd.STOPPED if context.status().stop_requested else LoadEnd.INTERRUPTED
            ending.look(stopped is not None)
        status, _ = process.finish()
        message = process.error_text
    context.engine_identity = None
    if stopped is not None:
        return LoadOutcome(stopped)
    if status != 0:
        return LoadOutcome(LoadEnd.FAILED, f"preparing the target failed: {message or status_text(status)}")
    context.record_event(EventType.ENGINE, "prepared", seconds=round(context.run_clock.now() - begun, 3))
    return LoadOutcome(LoadEnd.COMPLETED)
