"""A page of a journal holds a few mebibytes at most, however many items were asked for and however large they are."""

from typing import Any

import pytest
from testkit import journals
from tests.api.harness import Api

from cliffwatch.http import paging
from cliffwatch.journal import Event, EventLog, EventType, JournalReader


def pages(api: Api, path: str, **query: Any) -> list[list[Any]]:
    """The items of each page, up to the last."""
    found: list[list[Any]] = []
    page = None
    while page is not None or not found:
        body = api.get(path, params=query | ({} if page is None else {"page": page})).json()
        found.append(body["items"])
        page = body["next_page"]
    return found


def test_a_page_of_windows_ends_once_it_is_full(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = journals.queue(api.settings.runs_directory, "one")
    journals.start(directory)
    journals.measure(directory, 5)
    api.index("one")
    monkeypatch.setattr(paging, "PAGE_BYTES", 200)
    decoded: list[int] = []
    histograms = JournalReader.histograms

    def counted(reader: JournalReader, window: Any) -> Any:
        decoded.append(window.seq)
        return histograms(reader, window)

    monkeypatch.setattr(JournalReader, "histograms", counted)
    first = api.get("/runs/one/windows?histograms=true&limit=1000").json()
    assert ([window["seq"] for window in first["items"]], decoded) == ([0], [0])
    assert [[window["seq"] for window in page] for page in pages(api, "/runs/one/windows", histograms=True)] == [
        [number] for number in range(5)
    ]
    monkeypatch.setattr(paging, "PAGE_BYTES", 10_000)
    assert [len(page) for page in pages(api, "/runs/one/windows", limit=2)] == [2, 2, 1]


def test_a_page_of_events_ends_once_it_is_full_and_is_not_read_from_the_first_again(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = journals.queue(api.settings.runs_directory, "one")
    api.index("one")
    for number in range(4):
        EventLog(directory).append(Event(journals.START, EventType.NOTE, f"n{number}", {"text": "x" * 1000}))
    monkeypatch.setattr(paging, "PAGE_BYTES", 1500)
    parsed: list[bytes] = []
    from_line = Event.from_line

    def counted(line: bytes) -> Event:
        parsed.append(line)
        return from_line(line)

    monkeypatch.setattr(Event, "from_line", counted)
    found = [[event["id"] for event in page] for page in pages(api, "/runs/one/events", limit=500)]
    assert found == [[1, 2, 3], [4, 5]]
    parsed.clear()
    last = api.get("/runs/one/events?after=4").json()["items"]
    assert ([event["name"] for event in last], len(parsed)) == (["n3"], 1)
