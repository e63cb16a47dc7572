"""A status that is kept up with a journal: the same as if all of it were read, at the cost of what is new."""

from pathlib import Path

import pytest

from cliffwatch.journal import Event, EventLog, EventType, JournalReader
from cliffwatch.journal.following import StatusFollower
from cliffwatch.journal.state import change_state, status_of
from cliffwatch.model.run_state import RunState, VerdictName


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    made = EventLog(tmp_path)
    change_state(made, RunState.QUEUED, 100.0)
    return made


def test_the_status_is_that_of_all_events_after_each_of_them(log: EventLog, tmp_path: Path) -> None:
    follower = StatusFollower(tmp_path)
    at = 100.0
    for state in (RunState.STARTING, RunState.INTERRUPTED, RunState.STARTING, RunState.INTERRUPTED, RunState.STOPPING):
        at += 1
        change_state(log, state, at)
        log.append(Event(at, EventType.PHASE, f"phase-{at:.0f}"))
        assert follower.status() == status_of(stored.event for stored in JournalReader(tmp_path).events())
        assert follower.status() == follower.status()


def test_journal_content_already_read_is_not_read_again(log: EventLog, tmp_path: Path) -> None:
    follower = StatusFollower(tmp_path)
    follower.status()
    path = tmp_path / "events.jsonl"
    with path.open("r+b") as file:
        file.write(b"x" * (path.stat().st_size - 1))
    change_state_by_hand = Event(105.0, EventType.PHASE, "soak")
    log.append(change_state_by_hand)
    status = follower.status()
    assert status is not None
    assert (status.state, status.phase) == (RunState.QUEUED, "soak")


def test_a_line_that_is_still_being_written_is_read_once_it_is_whole(log: EventLog, tmp_path: Path) -> None:
    follower = StatusFollower(tmp_path)
    line = Event(106.0, EventType.STATE, "starting").to_line().encode()
    for part in (line[:20], line[20:]):
        before = follower.status()
        assert before is not None
        assert before.state is RunState.QUEUED
        with (tmp_path / "events.jsonl").open("ab") as file:
            file.write(part)
    after = follower.status()
    assert after is not None
    assert after.state is RunState.STARTING


CANNOT_BE_FOLLOWED = (
    Event(101.0, EventType.STATE, "archived"),
    Event(101.0, EventType.STATE, "running", {"load_start": None}),
    Event(101.0, EventType.STATE, "running"),
    Event(101.0, EventType.NOTE, "load_moved", {"load_start": "soon", "load_stop": 1.0}),
    Event(101.0, EventType.NOTE, "load_moved", {"load_start": 1e300, "load_stop": 1e300}),
)


@pytest.mark.parametrize("event", CANNOT_BE_FOLLOWED, ids=lambda event: f"{event.name} {event.detail}")
def test_an_event_that_cannot_be_followed_is_skipped_and_named_once(
    log: EventLog, tmp_path: Path, event: Event
) -> None:
    follower = StatusFollower(tmp_path)
    log.append(event)
    status = follower.status()
    assert status is not None
    assert status.state is RunState.QUEUED
    (fault,) = follower.faults
    assert f"{event.name!r} cannot be followed" in fault
    # The state can still be changed, and what follows is followed.
    change_state(log, RunState.STARTING, 102.0)
    after = follower.status()
    assert after is not None
    assert (after.state, follower.faults) == (RunState.STARTING, [])


def test_a_run_that_finished_with_a_verdict_of_a_newer_version_has_finished(log: EventLog, tmp_path: Path) -> None:
    log.append(Event(103.0, EventType.STATE, "finished", {"verdict": "marginal", "reasons": ["of another kind"]}))
    status = StatusFollower(tmp_path).status()
    assert status is not None
    assert (status.state, status.verdict) == (RunState.FINISHED, VerdictName.INVALID)
    assert status.reasons == ("The verdict 'marginal' is not known to this version of Cliffwatch.",)


@pytest.mark.parametrize("replace", [True, False], ids=["another file", "the same file, shorter"])
def test_a_journal_that_was_put_back_is_read_from_its_beginning(log: EventLog, tmp_path: Path, replace: bool) -> None:
    path = tmp_path / "events.jsonl"
    kept = path.read_bytes()
    change_state(log, RunState.STARTING, 101.0)
    follower = StatusFollower(tmp_path)
    assert follower.status() == status_of(stored.event for stored in JournalReader(tmp_path).events())
    if replace:
        (tmp_path / "restored").write_bytes(kept + b" " * 200 + b"\n")
        (tmp_path / "restored").replace(path)
    else:
        path.write_bytes(kept)
    status = follower.status()
    assert status is not None
    assert status.state is RunState.QUEUED
