"""Marking a span of a run: an event of its journal, and every wrong mark named by its field."""

from typing import Any

import pytest
from testkit import journals
from tests.api.harness import Api

from cliffwatch.app.marks import MARKS_LIMIT
from cliffwatch.journal import Event, EventLog, EventType, JournalReader
from cliffwatch.journal.state import status_of

MARK = {"text": "pulled a drive", "start": "2026-11-26T12:00:00Z", "end": "2026-11-26T13:05:00+01:00"}


def live(api: Api) -> Any:
    directory = journals.queue(api.settings.runs_directory, "one")
    journals.start(directory)
    api.index("one")
    return directory


def marks(directory: Any) -> list[dict[str, Any]]:
    return [stored.event.detail for stored in JournalReader(directory).events() if stored.event.name == "marked"]


def test_a_mark_is_an_event_of_the_run(api: Api) -> None:
    directory = live(api)
    answer = api.post("/runs/one/marks", MARK)
    assert (answer.status_code, answer.json()["text"]) == (201, "pulled a drive")
    [found] = marks(directory)
    assert found["end"] - found["start"] == 300.0
    assert (found["message"], found["by"]) == ("pulled a drive", "operate")


@pytest.mark.parametrize(
    ("start", "end"), [("1h29m", "1h35m"), ("1:29:00", "1:35:00"), ("5340s", "1h35m"), ("1:29:00", "1h 35m")]
)
def test_times_of_a_mark_may_be_those_since_the_load_began(api: Api, start: str, end: str) -> None:
    directory = live(api)
    assert api.post("/runs/one/marks", MARK | {"start": start, "end": end}).status_code == 201
    status = status_of(stored.event for stored in JournalReader(directory).events())
    assert status is not None
    assert status.load_start is not None
    [found] = marks(directory)
    assert (found["start"] - status.load_start, found["end"] - status.load_start) == (5340.0, 5700.0)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"start": "1h35m", "end": "1h35m"}, "end"),
        ({"start": "1h-5m"}, "start"),
        ({"end": "1:60:00"}, "end"),
        ({"end": "x" * 200}, "end"),
        ({"text": ""}, "text"),
        ({"text": "x" * 201}, "text"),
        ({"text": "a\0b"}, "text"),
        ({"start": "12:00"}, "start"),
        ({"end": "2026-11-26T12:00:00"}, "end"),
        ({"end": "2026-11-26T12:00:00Z"}, "end"),
        ({"start": "1999-01-01T00:00:00Z", "end": "1999-01-01T00:01:00Z"}, "end"),
    ],
)
def test_a_wrong_mark_names_its_field_and_marks_nothing(api: Api, change: dict[str, str], field: str) -> None:
    directory = live(api)
    answer = api.post("/runs/one/marks", MARK | change)
    assert answer.status_code == 422
    assert any(field in fault["field"] or field in fault["message"] for fault in answer.json()["errors"])
    assert marks(directory) == []


def test_a_mark_after_the_load_needs_a_reason_and_shows_it(api: Api) -> None:
    directory = live(api)
    EventLog(directory).append(Event(1.0, EventType.ENGINE, "load_ended", {"how": "completed"}))
    answer = api.post("/runs/one/marks", MARK)
    assert answer.status_code == 422
    assert [fault["field"] for fault in answer.json()["errors"]] == ["reason"]
    assert marks(directory) == []
    assert api.post("/runs/one/marks", MARK | {"reason": "ticket 7"}).status_code == 201
    assert [found["reason"] for found in marks(directory)] == ["ticket 7"]


def test_a_run_without_a_load_and_one_with_too_many_marks_take_none(api: Api) -> None:
    journals.queue(api.settings.runs_directory, "two")
    api.index("two")
    assert api.post("/runs/two/marks", MARK).json()["code"] == "wrong_state"
    assert api.post("/runs/three/marks", MARK).status_code == 404
    live(api)
    assert {api.post("/runs/one/marks", MARK).status_code for _ in range(MARKS_LIMIT)} == {201}
    assert api.post("/runs/one/marks", MARK).json()["code"] == "conflict"
