"""Following a run through what can happen to the connection; the service is scripted, answer by answer."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from cliffwatch.base.clock import VirtualClock
from cliffwatch.base.errors import Code, Problem
from cliffwatch.cli.client import ApiClient
from cliffwatch.cli.live import EventSeen, Follower, KeepAlive, RunNotice, RunSeen, Update, WindowSeen

RUN = "soak-1"
Answer = Callable[[httpx.Request], httpx.Response]


class Script:
    """Answers a request for the run's stream with the next of `streams`, and one for the run with the next of `runs`.

    The last of `runs` repeats. Answers are responses, or exceptions to raise.
    """

    def __init__(self, runs: list[Any], streams: list[Any]) -> None:
        self.runs = runs
        self.streams = streams
        self.last_event_ids: list[str | None] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/live"):
            self.last_event_ids.append(request.headers.get("last-event-id"))
            answer = self.streams.pop(0)
        else:
            answer = self.runs.pop(0) if len(self.runs) > 1 else self.runs[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(200, json=answer) if isinstance(answer, dict) else answer


def run(state: str, **more: Any) -> dict[str, Any]:
    return {"id": RUN, "state": state, **more}


def window(seq: int) -> dict[str, Any]:
    return {"seq": seq, "phase": "soak", "start": 0.0, "end": 1.0, "counters": {}, "latency": {}}


def stream(*events: tuple[str, dict[str, Any]], first_id: int = 1, then: Exception | None = None) -> httpx.Response:
    def content() -> Iterator[bytes]:
        yield b": alive\n\n"
        for number, (name, data) in enumerate(events, first_id):
            yield f"id: {number}\nevent: {name}\ndata: {json.dumps(data)}\n\n".encode()
        if then is not None:
            raise then

    return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=content())


def follow(script: Script, give_up_after: float = 600.0) -> list[Update]:
    with ApiClient("http://127.0.0.1:9899", "token", httpx.MockTransport(script)) as api:
        updates = Follower(api, RUN, VirtualClock(0.0), give_up_after).updates()
        return [update for update in updates if not isinstance(update, KeepAlive)]


def test_a_run_is_followed_to_its_end() -> None:
    event = {"type": "gap", "name": "engine_started_late"}
    script = Script(
        [run("running")], [stream(("window", window(0)), ("event", event), ("run", run("finished", verdict="pass")))]
    )
    assert follow(script) == [
        RunSeen(run("running")),
        WindowSeen(window(0)),
        EventSeen(event),
        RunSeen(run("finished", verdict="pass")),
    ]


def test_a_run_that_is_over_is_not_streamed() -> None:
    assert follow(Script([run("finished")], [])) == [RunSeen(run("finished"))]


def test_after_a_restart_the_stream_goes_on_behind_the_last_event() -> None:
    script = Script(
        [run("running")],
        [
            stream(("window", window(0)), first_id=41, then=httpx.ReadError("reset")),
            httpx.ConnectError("refused"),
            stream(("window", window(1)), ("run", run("finished")), first_id=42),
        ],
    )
    updates = follow(script)
    assert script.last_event_ids == [None, "41", "41"]
    assert [update.window["seq"] for update in updates if isinstance(update, WindowSeen)] == [0, 1]
    assert [update.text for update in updates if isinstance(update, RunNotice)] == [
        "the service does not answer; the run continues, and this command reconnects",
        "the service answers again",
    ]


def test_streams_that_are_held_back_on_the_way_give_way_to_polling() -> None:
    runs = [
        *[run("running")] * 3,
        run("running", last_window=window(4)),
        run("running", last_window=window(4)),
        run("finished", last_window=window(5)),
    ]
    updates = follow(Script(runs, [stream(), stream()]))
    assert [update.window["seq"] for update in updates if isinstance(update, WindowSeen)] == [4, 5]
    assert updates[-2] == RunSeen(runs[-1])


def test_a_stream_that_is_refused_gives_way_to_polling() -> None:
    refusal = httpx.Response(405, json={"title": "no", "detail": "no", "code": "method_not_allowed"})
    assert follow(Script([run("running"), run("running"), run("finished")], [refusal]))[-1] == RunSeen(run("finished"))


def test_a_service_that_stays_away_is_given_up_and_the_way_back_is_said() -> None:
    script = Script([run("running")], [httpx.ConnectError("refused")] * 100)
    with pytest.raises(Problem, match=f"cliffwatch run watch {RUN}") as caught:
        follow(script, give_up_after=60.0)
    assert caught.value.code is Code.SERVICE_UNREACHABLE


def test_a_service_that_never_answered_is_not_waited_for() -> None:
    with pytest.raises(Problem, match="no service answers"):
        follow(Script([httpx.ConnectError("refused")], []))


def test_a_run_that_does_not_exist_is_said_at_once() -> None:
    missing = httpx.Response(404, json={"title": "no", "detail": "there is no run soak-1", "code": "not_found"})
    with pytest.raises(Problem, match="there is no run soak-1"):
        follow(Script([missing], []))
