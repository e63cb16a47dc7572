"""Mark a span of a run: an event in its journal, which the report draws and excludes from its judgement."""

from collections.abc import Callable
from pathlib import Path

from cliffwatch.analysis.marks import Mark, marks_in
from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.journal import Event, EventLog, EventType, ends_load, files
from cliffwatch.journal.events import MARKED
from cliffwatch.journal.state import status_of
from cliffwatch.store.models import RunRow

#: Maximum number of marks in a run: with more, the unmarked rest says little of the run.
MARKS_LIMIT = 100


def mark_run(row: RunRow, mark_from: Callable[[float], Mark], by: str, now: float) -> None:
    """Append a mark to a run's journal. `mark_from` is given when the load began, in seconds since the epoch.

    Raises Problem: bad_request for a span without length or before the load and for a mark without a reason once the
    load is over, wrong_state before the load began, conflict for a run with MARKS_LIMIT marks, journal_unreadable
    without events.jsonl.
    """
    directory = Path(row.directory)

    def decide(events: list[Event]) -> list[Event]:
        status = status_of(events)
        if status is None or status.load_start is None:
            raise Problem(Code.WRONG_STATE, f"the load of run {row.id} has not begun; mark what happens under it")
        mark = mark_from(status.load_start)
        if mark.end <= mark.start:
            fault = FieldFault("end", "it is not after `start`; give a later time")
            raise Problem(Code.BAD_REQUEST, "the mark is not valid", [fault])
        if mark.end <= status.load_start:
            fault = FieldFault("end", "it lies before the load; give a time under it, with its zone")
            raise Problem(Code.BAD_REQUEST, "the mark is not valid", [fault])
        if any(map(ends_load, events)) and not mark.reason:
            fault = FieldFault("reason", "the load is over; say why the span is marked only now")
            raise Problem(Code.BAD_REQUEST, "the mark is not valid", [fault])
        if len(marks_in(events)) >= MARKS_LIMIT:
            raise Problem(Code.CONFLICT, f"run {row.id} has {MARKS_LIMIT} marks, the most that a run takes")
        detail = {"start": mark.start, "end": mark.end, "message": mark.text, "by": by}
        detail |= {"reason": mark.reason} if mark.reason else {}
        return [Event(now, EventType.NOTE, MARKED, detail)]

    if not (directory / files.EVENTS).exists():
        raise Problem(Code.JOURNAL_UNREADABLE, f"{directory / files.EVENTS} is not there")
    EventLog(directory).append_all(decide)
