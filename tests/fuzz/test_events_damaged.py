"""events.jsonl: what a disk changed is named, and what the file says besides still counts."""

import json

import pytest
from hypothesis import example
from hypothesis import strategies as st
from testkit.recorded_runs import LOAD_START
from tests.fuzz.damage import restructured, spoiled
from tests.fuzz.explore import bounded, explore, holds
from tests.fuzz.journals import bodies, journal, journal_files, resealed

from cliffwatch.base.finite_json import lenient_json
from cliffwatch.journal import Event, EventLog, EventType, JournalReader, files
from cliffwatch.journal.checksum import opened
from cliffwatch.journal.event_text import event_text
from cliffwatch.journal.following import StatusFollower

WRITTEN = journal_files()[files.EVENTS]
#: By their lines, as they were written and as they are where damage took the checksum and nothing else.
EVENTS = {form: Event.from_line(line) for line in WRITTEN.splitlines() for form in (line, opened(line))}
NOTE = Event(LOAD_START + 500, EventType.NOTE, "after", {"text": "a\u2028b", "count": 2})


@example(content=b"\n".join(map(opened, WRITTEN.splitlines(keepends=True))) + b"\n")
@holds(examples=100, content=spoiled(st.just(WRITTEN)))
def test_a_damaged_line_is_named_and_never_another_event(content: bytes) -> None:
    with journal(events_jsonl=content) as directory, bounded():
        reader = JournalReader(directory)
        found = {stored.id: stored.event for stored in reader.events()}
        lines = {number: line for number, line in enumerate(content.split(b"\n")[:-1], 1) if line}
        whole = {number: EVENTS[line.rstrip(b"\r")] for number, line in lines.items() if line.rstrip(b"\r") in EVENTS}
        assert found == whole
        assert {fault.line for fault in reader.faults} == lines.keys() - whole.keys()
        StatusFollower(directory).status()
        EventLog(directory).append(NOTE)
        assert [stored.event for stored in JournalReader(directory).events()] == [*whole.values(), *rest(content), NOTE]


def rest(content: bytes) -> list[Event]:
    """What stood in a last line that had lost its newline alone."""
    last = content.rpartition(b"\n")[2].rstrip(b"\r")
    return [EVENTS[last]] if last in EVENTS else []


LINES = restructured(st.sampled_from(bodies(files.EVENTS)))


@holds(examples=150, line=LINES | st.builds(resealed, LINES))
def test_a_line_that_says_something_else_is_an_event_or_none(line: str) -> None:
    with bounded():
        try:
            event = Event.from_line(line)
        except ValueError:
            return
        assert isinstance(event.name, str)
        assert isinstance(event.detail, dict)
        assert 0 <= event.happened_at <= files.LAST_MOMENT
        assert Event.from_line(event.to_line()).detail == event.detail
        assert isinstance(event_text(event.type, event.name, event.detail), str)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 500 + "NaN" + "]" * 500,
        '{"a":' * 300 + "1" + "}" * 300,
        '{"at":1.0,"type":"note","name":"n","detail":[["a",1]]}',
        '{"at":1.0,"type":"note","name":{"a":1},"detail":{}}',
    ],
)
def test_an_event_line_nested_too_deep_or_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"nested|not an event"):
        Event.from_line(text)


def test_a_number_that_hides_that_it_is_not_finite_is_absent() -> None:
    value, found = lenient_json('{"a": 1' + "0" * 250 + "e99}")
    assert (value, found) == ({"a": None}, 1)
    assert json.dumps(value, allow_nan=False)


@pytest.mark.real(why="damage at random")
def test_events_at_random() -> None:
    explore(
        test_a_damaged_line_is_named_and_never_another_event,
        test_a_line_that_says_something_else_is_an_event_or_none,
    )
