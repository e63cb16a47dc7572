import json
import threading
from collections.abc import Generator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy.exc import OperationalError
from testkit import journals
from testkit.waiting import wait_until
from tests.api.harness import Api

from cliffwatch.app.tokens import Caller, TokenService
from cliffwatch.http.stream_places import STREAMS_LIMIT, STREAMS_OF_A_TOKEN_LIMIT


@dataclass(frozen=True, slots=True)
class Message:
    name: str
    id: str
    body: dict[str, Any]


def follow(
    api: Api, run_id: str, last_event_id: str | None = None, scope: str = "read"
) -> Generator[Message, None, None]:
    """The events of a stream, until it ends."""
    headers = {"Authorization": f"Bearer {api.tokens[scope]}"}
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


def open_streams(api: Api, count: int, scope: str, held: ExitStack) -> list[Generator[Message, None, None]]:
    """Streams that have begun, each read as far as its first message."""
    streams = [held.enter_context(closing(follow(api, "one", scope=scope))) for _ in range(count)]
    for stream in streams:
        assert next(stream).name == "event"
    return streams


def test_streams_of_a_token_are_bounded_and_a_place_is_free_again_when_one_ends(api: Api) -> None:
    add_running(api)
    with ExitStack() as held:
        streams = open_streams(api, STREAMS_OF_A_TOKEN_LIMIT, "read", held)
        refused = api.get("/runs/one/live")
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_streams")
        assert f"{STREAMS_OF_A_TOKEN_LIMIT} live streams are open with this token" in refused.json()["detail"]
        assert refused.headers["retry-after"] == "5"
        # Streams of another token do not count.
        open_streams(api, 1, "operate", held)
        streams[0].close()

        def has_a_place() -> bool:
            headers = {"Authorization": f"Bearer {api.tokens['read']}"}
            with api.client.stream("GET", "/api/v1/runs/one/live", headers=headers) as response:
                return response.status_code == 200

        wait_until(has_a_place, "the place of the stream that ended", 5.0)


def test_all_streams_together_leave_places_for_what_is_none(api: Api) -> None:
    add_running(api)
    with ExitStack() as held:
        for scope in ("read", "operate"):
            open_streams(api, STREAMS_LIMIT // 2, scope, held)
        refused = api.get("/runs/one/live", scope="admin")
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_streams")
        assert httpx.get(f"{api.client.base_url}/healthz", trust_env=False).status_code == 200
        assert api.post("/runs/one/stop").status_code == 202


def test_a_page_that_is_open_too_often_is_told_why_its_stream_is_refused(api: Api) -> None:
    add_running(api)
    with ExitStack() as held:
        # A browser that is logged in is the token it was logged in with.
        open_streams(api, STREAMS_OF_A_TOKEN_LIMIT, "read", held)
        refused = api.client.get("/runs/one/live", headers={"Cookie": f"cliffwatch_token={api.tokens['read']}"})
    assert refused.status_code == 429
    assert "close one" in refused.json()["detail"]


def test_a_stream_ends_when_its_token_is_revoked(api: Api) -> None:
    add_running(api)
    made = api.call("POST", "/tokens", {"name": "wall", "scope": "read"}).json()
    api.tokens["wall"] = made["token"]
    stream = follow(api, "one", scope="wall")
    assert next(stream).name
    assert api.call("DELETE", f"/tokens/{made['id']}").status_code == 204
    # Ends, although the run goes on.
    assert all(message.name for message in stream)
    assert api.get("/runs/one").json()["state"] == "running"


@pytest.mark.parametrize("place", ["9" * 5000 + ".1", "1." + "9" * 5000, "\u0661.1", "--1.1", "1"])
def test_a_last_event_id_that_is_none_begins_at_the_start(api: Api, place: str) -> None:
    finish(api, add_running(api))
    named = {"Cookie": f"cliffwatch_token={api.tokens['read']}", "Last-Event-ID": place}
    given = httpx.Headers(named, encoding="utf-8")
    with api.client.stream("GET", "/runs/one/live", headers=given) as answer:
        assert answer.status_code == 200
        assert "event: event" in answer.read().decode()


def test_a_stream_goes_on_when_the_database_is_back(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = add_running(api)
    away = threading.Event()
    asked = threading.Event()
    holds = TokenService.holds

    def answer(service: TokenService, caller: Caller) -> bool:
        if away.is_set():
            asked.set()
            raise OperationalError("SELECT 1", {}, Exception("the server is away"))
        return holds(service, caller)

    monkeypatch.setattr(TokenService, "holds", answer)
    stream = follow(api, "one")
    assert next(stream).name
    away.set()
    assert asked.wait(timeout=30)
    finish(api, directory)
    away.clear()
    assert [message.body["state"] for message in stream if message.name == "run"][-1] == "finished"
