"""Events from two processes end up whole and in one order, and a torn line takes no other with it."""

import subprocess
import sys
from pathlib import Path

import pytest

from cliffwatch.base.errors import Problem
from cliffwatch.journal import Event, EventLog, EventType, JournalReader, files
from cliffwatch.journal.state import change_state
from cliffwatch.model.run_state import RunState

WRITER = """
import sys
from pathlib import Path
from cliffwatch.journal import Event, EventLog, EventType
log = EventLog(Path(sys.argv[1]))
for number in range(200):
    log.append(Event(float(number), EventType.NOTE, sys.argv[2], {"number": number, "filler": "x" * 500}))
"""


def test_events_are_read_back_with_their_numbers(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log.append(Event(1.5, EventType.PHASE, "soak", {"start": 1.5, "end": 9.0}))
    log.append(Event(2.5, EventType.GAP, "engine_restarted", {"seconds": 3.0}))
    stored = list(JournalReader(tmp_path).events())
    assert [item.id for item in stored] == [1, 2]
    assert stored[1].event == Event(2.5, EventType.GAP, "engine_restarted", {"seconds": 3.0})
    resumed = list(JournalReader(tmp_path).events(stored[0].offset_bytes, first_id=2))
    assert resumed == stored[1:]


def test_two_processes_write_at_once_without_mixing_lines(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name]) for name in ("worker", "service")]
    assert [writer.wait() for writer in writers] == [0, 0]
    reader = JournalReader(tmp_path)
    events = [stored.event for stored in reader.events()]
    assert reader.faults == []
    for name in ("worker", "service"):
        assert [event.detail["number"] for event in events if event.name == name] == list(range(200))


def test_a_torn_line_is_closed_off_and_reported(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log.append(Event(1.0, EventType.NOTE, "whole"))
    with (tmp_path / files.EVENTS).open("ab") as file:
        file.write(b'{"at":2.0,"type":"no')
    assert [stored.event.name for stored in JournalReader(tmp_path).events()] == ["whole"]
    EventLog(tmp_path).append(Event(3.0, EventType.NOTE, "after"))
    reader = JournalReader(tmp_path)
    assert [stored.event.name for stored in reader.events()] == ["whole", "after"]
    assert [(fault.file, fault.line) for fault in reader.faults] == [(files.EVENTS, 2)]


def test_a_line_that_lacks_nothing_but_its_end_counts_for_all_or_for_none(tmp_path: Path) -> None:
    """A process that would record the same again is refused, and from then on every reader sees the line."""
    log = EventLog(tmp_path)
    log.append(Event(1.0, EventType.STATE, "queued"))
    with (tmp_path / files.EVENTS).open("ab") as file:
        file.write(Event(2.0, EventType.STATE, "starting").to_line().removesuffix("\n").encode())
    assert [stored.event.name for stored in JournalReader(tmp_path).events()] == ["queued"]
    with pytest.raises(Problem):
        change_state(log, RunState.STARTING, 3.0)
    assert [stored.event.name for stored in JournalReader(tmp_path).events()] == ["queued", "starting"]


@pytest.mark.parametrize("line", ["[]", "{}", '{"at":1,"type":"unheard_of","name":"x","detail":{}}', "1"])
def test_a_line_that_is_no_event_is_a_fault(tmp_path: Path, line: str) -> None:
    (tmp_path / files.EVENTS).write_text(line + "\n")
    reader = JournalReader(tmp_path)
    assert list(reader.events()) == []
    assert len(reader.faults) == 1
