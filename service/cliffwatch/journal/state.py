"""State machine of a run: status from its events, and the one function that changes its state.

The events determine the state of a run; a change is an event, decided and written under the journal's lock. The worker
and the service both use `change_state`, so a change that the table of transitions does not allow cannot be written.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cliffwatch.base.errors import Code, Problem
from cliffwatch.journal.conclusion import Conclusion
from cliffwatch.journal.events import MARKED, Event, EventLog, EventType, found_at_end
from cliffwatch.journal.files import LAST_MOMENT
from cliffwatch.model.run_state import TRANSITIONS, RunState, VerdictName

#: Note on a finished run whose analysis could not be made at its end, and was made later.
MENDED_NOTE = "verdict_mended"
#: Note with a new start and end of the load, since the first engine was ready later than planned.
MOVED_NOTE = "load_moved"
#: Beginning of the reason of a run whose analysis failed, as written by versions that had no MENDED_NOTE.
_FORMER_REASON = "the verdict could not be determined"


@dataclass(frozen=True, slots=True)
class RunStatus:
    """Status of a run from its events. Times in seconds since the epoch; None for what has not happened yet.

    The load was planned from `load_start` to `load_stop`, on the window grid; a resumed run keeps both. If the first
    engine is ready later, both are moved.
    """

    state: RunState
    since: float
    created_at: float
    started_at: float | None = None
    load_start: float | None = None
    load_stop: float | None = None
    finished_at: float | None = None
    verdict: VerdictName | None = None
    reasons: tuple[str, ...] = ()
    phase: str | None = None
    stop_requested: bool = False


def status_of(events: Iterable[Event], faults: list[str] | None = None) -> RunStatus | None:
    """Fold events into a status; None when there is no state event among them.

    An event that cannot be applied, such as one of a newer version, changes nothing; `faults` gets a message for each.
    """
    status: RunStatus | None = None
    for event in events:
        status = advance(status, event, faults)
    return status


def advance(status: RunStatus | None, event: Event, faults: list[str] | None = None) -> RunStatus | None:
    """Apply one event to a status; one step of `status_of`."""
    try:
        return _followed(status, event)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        if faults is not None:
            faults.append(f"the {event.type.value} event {event.name!r:.80} cannot be followed: {error!r:.200}")
        return status


def _followed(status: RunStatus | None, event: Event) -> RunStatus | None:
    """Apply an event to a status.

    Raises ValueError, KeyError, TypeError or OverflowError for an event that no worker of this version writes.
    """
    if event.type is EventType.PHASE and status is not None:
        return replace(status, phase=event.name)
    if event.type is EventType.NOTE and event.name == MENDED_NOTE and status is not None:
        if status.state is not RunState.FINISHED:
            return status
        return replace(status, verdict=VerdictName(event.detail["verdict"]), reasons=tuple(event.detail["reasons"]))
    if event.type is EventType.NOTE and event.name == MOVED_NOTE and status is not None:
        start, stop = _moment(event.detail["load_start"]), _moment(event.detail["load_stop"])
        return replace(status, load_start=start, load_stop=stop)
    if event.type is not EventType.STATE:
        return status
    state = RunState(event.name)
    if status is None:
        status = RunStatus(state=state, since=event.at, created_at=event.at)
    changes: dict[str, Any] = {"state": state, "since": event.at}
    if state is RunState.RUNNING and status.started_at is None:
        changes["started_at"] = event.at
        changes["load_start"] = _moment(event.detail["load_start"])
        changes["load_stop"] = _moment(event.detail["load_stop"])
    if state is RunState.STOPPING:
        changes["stop_requested"] = True
    if state is RunState.FINISHED:
        changes["finished_at"] = event.at
        changes["verdict"], changes["reasons"] = _verdict_in(event.detail)
    return replace(status, **changes)


def _verdict_in(detail: Mapping[str, Any]) -> tuple[VerdictName, tuple[str, ...]]:
    """Verdict and reasons of the event that finishes a run.

    An unknown verdict, of a newer version, is read as `invalid`: the run stays finished, and its load does not run
    again.
    """
    name = detail.get("verdict")
    if name not in list(VerdictName):
        return VerdictName.INVALID, (f"The verdict {name!r:.80} is not known to this version of Cliffwatch.",)
    return VerdictName(name), tuple(str(reason) for reason in detail.get("reasons", ()))


def _moment(value: Any) -> float:
    """The value as a time, in seconds since 1970. Raises ValueError or TypeError for an invalid one."""
    moment = float(value)
    if not 0 <= moment <= LAST_MOMENT:
        raise ValueError(f"{moment!r} is no time, in seconds since 1970")
    return moment


def change_state(log: EventLog, to: RunState, at: float, detail: dict[str, Any] | None = None) -> RunStatus:
    """Change a run's state to `to` and return its status, or raise Problem(wrong_state) and write nothing.

    A new journal begins at `queued`. A change to the state that a run is already in is an error too: the caller's view
    of the run is wrong.
    """
    outcome: list[RunStatus | None] = []

    def decide(events: list[Event]) -> Event:
        present = status_of(events)
        # A run whose events are too damaged to have a state can still be finished.
        allowed = frozenset({RunState.QUEUED, RunState.FINISHED}) if present is None else TRANSITIONS[present.state]
        if to not in allowed:
            name = "new" if present is None else present.state.value
            options = ", ".join(sorted(allowed)) or "nothing"
            raise Problem(
                Code.WRONG_STATE, f"a run that is {name} cannot become {to.value}; from here it can: {options}"
            )
        event = Event(at, EventType.STATE, to.value, detail or {})
        outcome.append(_followed(present, event))
        return event

    log.append_if(decide)
    status = outcome[0]
    assert status is not None, "a state event always makes a status"
    return status


def mend_verdict(log: EventLog, conclusion: Conclusion, at: float) -> bool:
    """Record the verdict of a finished run whose analysis failed at its end; returns whether it was recorded.

    A verdict from a successful analysis is kept, even if a later version of the program would give another one; it is
    replaced only if a span of the run was marked since.
    """

    def decide(events: list[Event]) -> list[Event]:
        ended = [event for event in events if event.type is EventType.STATE and event.name == RunState.FINISHED.value]
        if not ended:
            return []
        judged = [place for place, event in enumerate(events) if event is ended[-1] or event.name == MENDED_NOTE]
        is_marked = any(event.name == MARKED for event in events[judged[-1] :])
        if not is_marked and (len(judged) > 1 or _was_analysed(ended[-1])):
            return []
        found = found_at_end(conclusion.findings, events, at)
        return [*found, Event(at, EventType.NOTE, MENDED_NOTE, conclusion.detail())]

    return bool(log.append_all(decide))


def _was_analysed(finished: Event) -> bool:
    reasons = finished.detail.get("reasons") or [""]
    return finished.detail.get("analysed", True) is not False and not str(reasons[0]).startswith(_FORMER_REASON)
