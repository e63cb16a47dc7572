import json
import threading
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testkit import journals
from tests.api.harness import Api


@dataclass(frozen=True, slots=True)
class Message:
    name: str
    id: str
    body: dict[str, Any]


def follow(api: Api, run_id: str, last_event_id: str | None = None) -> Generator[Message, None, None]:
    """The events of a stream, until it ends."""
    headers = {"Authorization": f"Bearer {api.tokens['read']}"}
    if last_event_id is not None:
        headers["Last-Event-ID"] = last_event_id
    with api.client.stream("GET", f"/api/v1/runs/{run_id}/live", headers=headers) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        for line in response.iter_lines():
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif fields:
                yield Message(fields["event"], fields["id"], json.loads(fields["data"]))
                fields = {}


def add_running(api: Api, windows: int = 2) -> Path:
    directory = journals.queue(api.settings.runs_directory, "one")
    journals.start(directory)
    journals.measure(directory, windows)
    return api.index("one")


def finish(api: Api, directory: Path) -> None:
    journals.measure(directory, 1)
    journals.finish(directory)
    api.index("one")


def test_a_stream_reports_the_past_then_the_present_then_ends(api: Api) -> None:
    directory = add_running(api)
    messages: list[Message] = []
    for message in follow(api, "one"):
        messages.append(message)
        if message.name == "run" and message.body["state"] == "running":
            # All that was there has been sent: now something happens.
            threading.Thread(target=finish, args=[api, directory]).start()
    events = [message.body["name"] for message in messages if message.name == "event"]
    assert events == ["queued", "starting", "prepare", "running", "soak", "reporting", "finished"]
    assert [message.body["seq"] for message in messages if message.name == "window"] == [0, 1, 2]
    last = messages[-1]
    assert (last.name, last.body["state"], last.body["verdict"]) == ("run", "finished", "pass")
    assert last.body["last_window"]["seq"] == 2


def test_a_stream_goes_on_where_a_client_lost_it(api: Api) -> None:
    directory = add_running(api)
    finish(api, directory)
    everything = list(follow(api, "one"))
    for position, message in enumerate(everything[:-1]):
        rest = list(follow(api, "one", message.id))
        assert [(item.name, item.id) for item in rest] == [(item.name, item.id) for item in everything[position + 1 :]]


def test_an_id_of_another_stream_begins_at_the_start(api: Api) -> None:
    directory = add_running(api)
    finish(api, directory)
    assert len(list(follow(api, "one", "nonsense"))) == len(list(follow(api, "one")))


def test_a_finished_run_is_reported_once(api: Api) -> None:
    directory = add_running(api)
    finish(api, directory)
    assert [message.name for message in follow(api, "one")].count("run") == 1


def test_other_requests_are_answered_while_streams_are_open(api: Api) -> None:
    add_running(api)
    streams = [follow(api, "one") for _ in range(20)]
    for stream in streams:
        assert next(stream).name == "event"
    assert api.get("/runs/one").status_code == 200
    for stream in streams:
        stream.close()
