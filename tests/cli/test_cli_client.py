"""The client: refusals become problems that say what to do, pages become lists, streams become events."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.cli.client import ApiClient, ServerEvent, parse_events, path_of


def client_of(answer: Callable[[httpx.Request], httpx.Response]) -> ApiClient:
    return ApiClient("http://127.0.0.1:9899/", "cw_1_secret", httpx.MockTransport(answer))


def refused(response: httpx.Response) -> Problem:
    with client_of(lambda request: response) as api, pytest.raises(Problem) as caught:
        api.get("/runs")
    return caught.value


def test_the_token_and_the_prefix_go_with_every_request() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == "Bearer cw_1_secret"
        return httpx.Response(200, json={"path": request.url.path})

    with client_of(answer) as api:
        assert api.get("/runs/a") == {"path": "/api/v1/runs/a"}


def test_a_name_stays_one_part_of_the_path_whatever_is_in_it() -> None:
    assert path_of("runs", "a-1.b", "stop") == "/runs/a-1.b/stop"
    assert path_of("runs", "../tokens?x#y z") == "/runs/..%2Ftokens%3Fx%23y%20z"


def test_a_problem_keeps_its_code_detail_and_fields() -> None:
    body = {
        "title": "The workload is not valid.",
        "detail": "the workload is not valid",
        "code": "workload_invalid",
        "errors": [{"field": "phases.soak", "message": "'36' has no unit"}],
    }
    problem = refused(httpx.Response(422, json=body))
    assert problem.code is Code.WORKLOAD_INVALID
    assert problem.faults == [FieldFault("phases.soak", "'36' has no unit")]
    assert str(problem) == "the workload is not valid\n  phases.soak: '36' has no unit"


@pytest.mark.parametrize(("status", "code"), [(418, Code.BAD_REQUEST), (502, Code.INTERNAL)])
def test_an_answer_that_is_no_problem_is_one_by_its_status(status: int, code: Code) -> None:
    problem = refused(httpx.Response(status, text="<html>"))
    assert problem.code is code
    assert str(status) in problem.detail


def test_a_code_of_a_newer_service_keeps_its_sentence() -> None:
    problem = refused(httpx.Response(409, json={"title": "t", "detail": "no room on the moon", "code": "moon_full"}))
    assert (problem.code, problem.detail) == (Code.BAD_REQUEST, "no room on the moon")


def test_something_else_on_the_port_is_named() -> None:
    problem = refused(httpx.Response(200, text="hello"))
    assert problem.code is Code.SERVICE_UNREACHABLE
    assert "not a Cliffwatch service" in problem.detail


def test_a_port_without_a_listener_says_how_to_start_the_service() -> None:
    with ApiClient("http://127.0.0.1:1", "token") as api, pytest.raises(Problem, match="cliffwatch up") as caught:
        api.get("/runs")
    assert caught.value.code is Code.SERVICE_UNREACHABLE


def test_all_pages_make_one_list() -> None:
    pages: dict[str | None, dict[str, Any]] = {
        None: {"items": [{"id": "a"}, {"id": "b"}], "next_page": "p2"},
        "p2": {"items": [{"id": "c"}], "next_page": None},
    }
    with client_of(lambda request: httpx.Response(200, json=pages[request.url.params.get("page")])) as api:
        assert [item["id"] for item in api.list_all("/runs")] == ["a", "b", "c"]
        assert [item["id"] for item in api.list_all("/runs", limit=1)] == ["a"]


def test_events_are_read_as_the_standard_says() -> None:
    lines = [
        ": hello",
        "id: 7",
        "event: window",
        'data: {"seq":',
        "data:  1}",
        "",
        "event: no-data",
        "",
        "data: plain",
        "",
    ]
    assert list(parse_events(iter(lines))) == [
        ServerEvent("", "", ""),
        ServerEvent("window", '{"seq":\n 1}', "7"),
        ServerEvent("message", "plain", "7"),
    ]


def test_a_stream_that_breaks_while_it_is_read_is_a_problem() -> None:
    def broken() -> Iterator[bytes]:
        yield b"event: run\ndata: {}\n\n"
        raise httpx.ReadError("reset")

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["last-event-id"] == "5"
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=broken())

    seen: list[str] = []
    with client_of(answer) as api, pytest.raises(Problem) as caught, api.events("/runs/a/live", "5") as events:
        seen.extend(event.name for event in events)
    assert caught.value.code is Code.SERVICE_UNREACHABLE
    assert seen == ["run"]
