"""Every error of every route has one shape, is declared in OpenAPI and reveals no internals to a client."""

import json
from typing import Any

import pytest
from tests.api.harness import ORDER, Api, scope_of
from tests.api.problems import check

from cliffwatch.base.errors import KINDS, Code
from cliffwatch.http.figures import BODY_LIMIT_BYTES
from cliffwatch.server.openapi import render

DOCUMENT = json.loads(render())
OPERATIONS = [
    (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]
PROTECTED = [operation for operation in OPERATIONS if operation[1].startswith("/api/")]
#: An archive is no JSON: tests/labs/bundle says how a bundle that is none is answered.
WITH_BODY = [
    operation for operation in PROTECTED if "application/json" in operation[2].get("requestBody", {}).get("content", {})
]
#: Ids that are well formed and of nothing.
ABSENT = {"{run_id}": "absent", "{name}": "nothing", "{schedule_id}": "00000000", "{token_id}": "00000000"}


def name_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def fill(path: str) -> str:
    for place, value in ABSENT.items():
        path = path.replace(place, value)
    return path.removeprefix("/api/v1")


@pytest.mark.parametrize(("method", "path", "operation"), PROTECTED, ids=name_of)
def test_no_route_answers_without_a_token(lasting_api: Api, method: str, path: str, operation: dict[str, Any]) -> None:
    body: dict[str, Any] | None = {} if "requestBody" in operation else None
    response = lasting_api.client.request(method, f"/api/v1{fill(path)}", json=body)
    check(response, Code.UNAUTHENTICATED, operation)
    assert response.headers["www-authenticate"] == "Bearer"
    for wrong in ("Bearer nonsense", "Bearer cw_00000000_x", f"Basic {lasting_api.tokens['admin']}"):
        response = lasting_api.client.request(
            method, f"/api/v1{fill(path)}", json=body, headers={"Authorization": wrong}
        )
        check(response, Code.UNAUTHENTICATED)


@pytest.mark.parametrize(("method", "path", "operation"), PROTECTED, ids=name_of)
def test_every_route_asks_for_the_scope_that_it_needs(
    lasting_api: Api, method: str, path: str, operation: dict[str, Any]
) -> None:
    needs, ladder = scope_of(method, path), ["read", "operate", "admin"]
    # A body that no route takes: what is asked is refused, but by the route and not for want of scope.
    body: Any = [] if "requestBody" in operation else None
    if path.endswith("/live"):
        return  # an endless answer; its token is checked above, its scope by the same code
    for scope in ladder:
        response = lasting_api.call(method, fill(path), body, scope)
        if ladder.index(scope) < ladder.index(needs):
            check(response, Code.FORBIDDEN, operation)
        else:
            assert response.status_code not in {401, 403}


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    [entry for entry in PROTECTED if "{" in entry[1] and "requestBody" not in entry[2]],
    ids=name_of,
)
def test_an_absent_resource_is_not_found(lasting_api: Api, method: str, path: str, operation: dict[str, Any]) -> None:
    required = [each["name"] for each in operation["parameters"] if each["in"] == "query" and each.get("required")]
    answer = lasting_api.call(method, fill(path), params=dict.fromkeys(required, "absent"))
    check(answer, Code.NOT_FOUND, operation)


@pytest.mark.parametrize(("method", "path", "operation"), WITH_BODY, ids=name_of)
@pytest.mark.parametrize("content", [b"{", b"[]", b"7", b'"text"', b"\xff\xfe", b"null" * 2, b"{}{}"])
def test_a_body_that_is_no_object_is_a_bad_request(
    lasting_api: Api, method: str, path: str, operation: dict[str, Any], content: bytes
) -> None:
    response = lasting_api.call(method, fill(path), content=content, headers={"Content-Type": "application/json"})
    body = check(response, Code.BAD_REQUEST)
    assert "422" in operation["responses"]
    assert body["errors"] or body["detail"]


@pytest.mark.parametrize(("method", "path", "operation"), WITH_BODY, ids=name_of)
def test_a_body_that_is_too_large_is_not_read(
    lasting_api: Api, method: str, path: str, operation: dict[str, Any]
) -> None:
    content = b'{"name": "' + b"x" * BODY_LIMIT_BYTES + b'"}'
    response = lasting_api.call(method, fill(path), content=content, headers={"Content-Type": "application/json"})
    check(response, Code.BODY_TOO_LARGE, operation)


@pytest.mark.parametrize("path", sorted(DOCUMENT["paths"]))
def test_a_method_that_a_path_does_not_answer_is_said_to_be_so(lasting_api: Api, path: str) -> None:
    response = lasting_api.client.request("TRACE", path.replace("{", "").replace("}", ""))
    check(response, Code.METHOD_NOT_ALLOWED)
    methods = {method.upper() for method in DOCUMENT["paths"][path]}
    assert methods <= {method.strip() for method in response.headers["allow"].split(",")}


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/runs", "GET"),
        ("/schedules", "GET, POST"),
        ("/openapi.json", "GET"),
        ("/static/nothing.css", "GET"),
    ],
)
def test_a_wrong_method_outside_the_api_names_the_allowed_ones(lasting_api: Api, path: str, methods: str) -> None:
    response = lasting_api.client.request("DELETE", path)
    check(response, Code.METHOD_NOT_ALLOWED)
    assert response.headers["allow"] == methods


def test_a_body_without_its_media_type_is_asked_for_it(lasting_api: Api) -> None:
    response = lasting_api.call("POST", "/runs/plan", content=b'{"workload": "steady"}')
    fault = check(response, Code.BAD_REQUEST)["errors"][0]
    assert fault == {
        "field": "body",
        "message": "this is no JSON object; send one, with the header Content-Type: application/json",
    }


@pytest.mark.parametrize(
    ("trigger", "field", "message"),
    [
        ({"kind": "moon"}, "trigger", "'moon' is not a kind; write one of cron, interval, date"),
        ({}, "trigger", "has no `kind`; write one, which says what it is"),
        ({"kind": "date"}, "trigger.at", "missing; it has no default"),
        ({"kind": "interval", "every": "1h", "often": 1}, "trigger.often", "unknown key"),
        (
            {"kind": "cron", "expression": "0 2 * * *", "time_zone": "localtime"},
            "trigger.time_zone",
            "'localtime' is not a time zone; write one of the IANA database, such as Europe/Berlin",
        ),
        (
            {"kind": "cron", "expression": "0 2 * * *", "time_zone": "x" * 101},
            "trigger.time_zone",
            "is too long; write at most 100 characters",
        ),
    ],
)
def test_a_trigger_s_faults_are_named_as_the_document_has_them(
    lasting_api: Api, trigger: dict[str, Any], field: str, message: str
) -> None:
    response = lasting_api.post("/schedules", {"name": "odd", **ORDER, "trigger": trigger})
    (fault,) = check(response, Code.SCHEDULE_INVALID)["errors"]
    assert fault["field"] == field
    assert fault["message"].startswith(message)


@pytest.mark.parametrize("field", ["target", "durations"])
def test_a_number_in_place_of_a_mapping_is_named_in_the_fault(lasting_api: Api, field: str) -> None:
    (fault,) = check(lasting_api.post("/runs/plan", {**ORDER, field: 7}), Code.BAD_REQUEST)["errors"]
    assert fault == {"field": field, "message": "7 is not a mapping of keys to values"}


@pytest.mark.parametrize(
    "path", ["/nothing", "/apis", "/api/v1", "/api/v1/run", "/api/v1/runs/", "/api/v2/runs", "/%00"]
)
def test_a_path_that_is_none_is_not_found(lasting_api: Api, path: str) -> None:
    check(lasting_api.client.get(path), Code.NOT_FOUND)


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/runs?limit=0", "limit"),
        ("/runs?limit=501", "limit"),
        ("/runs?limit=many", "limit"),
        ("/runs?state=flying", "state"),
        ("/runs?workload=A%00B", "workload"),
        ("/runs/UPPER", "run_id"),
        ("/runs/a%00b", "run_id"),
        ("/runs/absent/events?after=-1", "after"),
        ("/runs/absent/windows?after=99999999999999999999", "after"),
        ("/runs/absent/windows?histograms=perhaps", "histograms"),
        ("/workloads/w?version=0", "version"),
        ("/schedules/not-an-id", "schedule_id"),
    ],
)
def test_a_wrong_parameter_is_named(lasting_api: Api, path: str, field: str) -> None:
    body = check(lasting_api.get(path), Code.BAD_REQUEST)
    assert [fault["field"] for fault in body["errors"]] == [field]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/runs?state=runing", "'runing' is not one of queued, starting, running, stopping, interrupted, reporting"),
        ("/runs?state=runing", "; did you mean 'running'?"),
        ("/schedules/not-an-id", "'not-an-id' is not an id; ids look like 43f4dc31"),
    ],
)
def test_a_wrong_parameter_is_reported_with_what_was_typed(lasting_api: Api, path: str, message: str) -> None:
    (fault,) = check(lasting_api.get(path), Code.BAD_REQUEST)["errors"]
    assert message in fault["message"]


@pytest.mark.parametrize("character", ["%23", "%3F", "%25", "%C3%A9"])
def test_the_path_that_was_asked_for_is_named_whole(lasting_api: Api, character: str) -> None:
    check(lasting_api.get(f"/runs/{character}/events"), Code.BAD_REQUEST)


def test_every_operation_declares_what_any_may_answer() -> None:
    for _, _, operation in PROTECTED:
        for code in (Code.BAD_REQUEST, Code.UNAUTHENTICATED, Code.FORBIDDEN, Code.INTERNAL, Code.NOT_READY):
            assert f"`{code.value}`" in operation["responses"][str(KINDS[code].status)]["description"]


def test_a_person_is_shown_a_page_and_a_program_is_not(lasting_api: Api) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    shown = lasting_api.client.get("/nowhere", headers=browser)
    assert (shown.status_code, shown.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is no resource at /nowhere" in shown.text
    check(lasting_api.client.get("/nowhere"), Code.NOT_FOUND)
    check(lasting_api.get("/nowhere", headers=browser), Code.NOT_FOUND)


def test_a_body_that_arrives_in_pieces_is_limited_too(lasting_api: Api) -> None:
    pieces = (b"x" * 65_536 for _ in range(BODY_LIMIT_BYTES // 65_536 + 1))
    check(lasting_api.call("POST", "/runs", content=pieces), Code.BODY_TOO_LARGE)


def test_a_failure_inside_is_logged_and_not_shown(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*arguments: object) -> None:
        raise ZeroDivisionError("a secret of the inside")

    monkeypatch.setattr("cliffwatch.http.run_rows.runs_page", fail)
    response = api.get("/runs")
    check(response, Code.INTERNAL, DOCUMENT["paths"]["/api/v1/runs"]["get"])
    assert "secret" not in response.text
    assert "a secret of the inside" in caplog.text


def test_a_failure_inside_a_page_is_a_page(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise ZeroDivisionError("a secret of the inside")

    monkeypatch.setattr("cliffwatch.web.login.local_path", fail)
    response = api.client.get("/login", headers={"Accept": "text/html,*/*;q=0.8"})
    assert response.status_code == 500
    assert response.headers["content-type"].startswith("text/html")
    assert "its log says more" in response.text
    assert "secret" not in response.text


def test_a_service_that_is_stopping_says_so(api: Api) -> None:
    services, api.app.state.services = api.app.state.services, None
    try:
        check(api.get("/runs"), Code.NOT_READY, DOCUMENT["paths"]["/api/v1/runs"]["get"])
        check(api.client.get("/readyz"), Code.NOT_READY, DOCUMENT["paths"]["/readyz"]["get"])
        assert api.client.get("/healthz").json() == {"status": "ok"}
    finally:
        api.app.state.services = services


def test_a_refusal_deep_inside_has_the_same_shape(api: Api) -> None:
    order = {**ORDER, "workload": {**ORDER["workload"], "engine": "warp"}}  # type: ignore[dict-item]  # a dict it is
    body = check(api.post("/runs", order), Code.WORKLOAD_INVALID, DOCUMENT["paths"]["/api/v1/runs"]["post"])
    assert body["errors"][0]["field"] == "engine"
