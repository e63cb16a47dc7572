"""The state machine: every allowed change works, every other is refused and leaves no trace."""

from pathlib import Path

import pytest

from cliffwatch.base.errors import Code, Problem
from cliffwatch.journal import EventLog, JournalReader
from cliffwatch.journal.state import RunStatus, change_state, status_of
from cliffwatch.model.run_state import MEANINGS, TRANSITIONS, RunState, VerdictName

#: A way from nothing to each state.
PATHS: dict[RunState, list[RunState]] = {
    RunState.QUEUED: [RunState.QUEUED],
    RunState.STARTING: [RunState.QUEUED, RunState.STARTING],
    RunState.RUNNING: [RunState.QUEUED, RunState.STARTING, RunState.RUNNING],
    RunState.STOPPING: [RunState.QUEUED, RunState.STARTING, RunState.RUNNING, RunState.STOPPING],
    RunState.INTERRUPTED: [RunState.QUEUED, RunState.STARTING, RunState.INTERRUPTED],
    RunState.REPORTING: [RunState.QUEUED, RunState.STARTING, RunState.REPORTING],
    RunState.FINISHED: [RunState.QUEUED, RunState.FINISHED],
}
DETAILS: dict[RunState, dict[str, object]] = {
    RunState.RUNNING: {"load_start": 10.0, "load_stop": 20.0},
    RunState.FINISHED: {"verdict": "pass", "reasons": ["it went well"]},
}


def walk(log: EventLog, states: list[RunState]) -> RunStatus:
    for at, state in enumerate(states):
        status = change_state(log, state, float(at), DETAILS.get(state, {}))
    return status


@pytest.mark.parametrize("start", list(RunState))
@pytest.mark.parametrize("to", list(RunState))
def test_the_table_is_what_happens(tmp_path: Path, start: RunState, to: RunState) -> None:
    log = EventLog(tmp_path)
    walk(log, PATHS[start])
    before = (tmp_path / "events.jsonl").read_bytes()
    if to in TRANSITIONS[start]:
        assert change_state(log, to, 9.0, DETAILS.get(to, {})).state is to
    else:
        with pytest.raises(Problem) as caught:
            change_state(log, to, 9.0, DETAILS.get(to, {}))
        assert caught.value.code is Code.WRONG_STATE
        assert (tmp_path / "events.jsonl").read_bytes() == before


def test_every_state_has_a_meaning_and_an_end() -> None:
    assert set(MEANINGS) == set(TRANSITIONS) == set(RunState)
    for state in RunState:
        reached, frontier = {state}, [state]
        while frontier:
            for following in TRANSITIONS[frontier.pop()] - reached:
                reached.add(following)
                frontier.append(following)
        assert RunState.FINISHED in reached


def test_a_status_is_what_the_events_say(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    live = walk(log, [*PATHS[RunState.STOPPING], RunState.REPORTING, RunState.FINISHED])
    folded = status_of(stored.event for stored in JournalReader(tmp_path).events())
    assert folded == live
    assert folded is not None
    assert folded.verdict is VerdictName.PASS
    assert folded.stop_requested
    assert (folded.created_at, folded.started_at, folded.finished_at) == (0.0, 2.0, 5.0)


def test_a_resumed_run_keeps_the_end_that_was_planned_first(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    walk(log, [*PATHS[RunState.RUNNING], RunState.INTERRUPTED, RunState.STARTING])
    status = change_state(log, RunState.RUNNING, 99.0, {"load_start": 50.0, "load_stop": 60.0})
    assert (status.load_start, status.load_stop) == (10.0, 20.0)
    assert status.started_at == 2.0


def test_a_journal_begins_queued(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="a run that is new cannot become running"):
        change_state(EventLog(tmp_path), RunState.RUNNING, 0.0, DETAILS[RunState.RUNNING])
