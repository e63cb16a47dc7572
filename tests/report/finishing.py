"""The end of a run as its worker makes it."""

from pathlib import Path
from typing import Any

from testkit.recorded_runs import at_window
from tests.report.cliff_run import PLAN

from cliffwatch.coordinator.reporting import judge_run
from cliffwatch.journal import Event, EventLog, EventType
from cliffwatch.journal.state import change_state
from cliffwatch.model.run_state import RunState


def judge_at_end(directory: Path) -> dict[str, Any]:
    """The report at the run's end, as a worker has it made; returns the detail of the event that finishes the run."""
    log, now = EventLog(directory), at_window(PLAN, PLAN.windows) + 9

    def record_event(type_: EventType, name: str, /, **detail: Any) -> None:
        log.append(Event(now, type_, name, detail))

    return judge_run(directory, record_event, lambda _: None).detail()


def finish(directory: Path) -> dict[str, Any]:
    detail = judge_at_end(directory)
    change_state(EventLog(directory), RunState.FINISHED, at_window(PLAN, PLAN.windows) + 9, detail)
    return detail
