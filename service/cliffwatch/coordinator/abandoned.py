"""Finish a run that the service has given up: remove its files and make its report, as for any other run.

Windows are not opened here, and order.json may be unreadable: either may be what killed the workers.
"""

import time
from dataclasses import replace
from pathlib import Path

from cliffwatch.coordinator.heartbeat import Heartbeat, processes_left
from cliffwatch.coordinator.reporting import judge_run
from cliffwatch.coordinator.restarts import GIVEN_UP
from cliffwatch.coordinator.run_files import note_databases, remove_files
from cliffwatch.journal import Event, EventLog, EventType, JournalReader, ends_load, files
from cliffwatch.journal.events import LEFT_BEHIND
from cliffwatch.journal.state import change_state
from cliffwatch.model.run_state import RunState
from cliffwatch.report.collect import order_in


def is_given_up(directory: Path) -> bool:
    """Whether the journal records that the service gave the run up, so that no worker may load its target any more."""
    return any(
        ends_load(stored.event) and bool(stored.event.detail.get(GIVEN_UP))
        for stored in JournalReader(directory).events()
    )


def close(directory: Path) -> None:
    """Remove the run's files, make its report, and change its state from `starting` to `finished`."""
    log = EventLog(directory)

    def record_event(type_: EventType, name: str, /, **detail: object) -> None:
        log.append(Event(time.time(), type_, name, detail))

    hung = processes_left(directory)
    replace(Heartbeat.of_this_process(), left=hung).write(directory)
    order = order_in(JournalReader(directory))
    if order is not None:
        remove_files(order, directory, record_event, hung=hung)
        note_databases(order, record_event)
    else:
        record_event(EventType.NOTE, LEFT_BEHIND, path="", message=f"{files.ORDER} does not say where the engine wrote")
    change_state(log, RunState.REPORTING, time.time())
    conclusion = judge_run(directory, record_event, time.sleep)
    change_state(log, RunState.FINISHED, time.time(), conclusion.detail())
