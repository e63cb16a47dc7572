"""Bodies that cost much for what they are: refused with a code, few words and little memory. Who asks comes first."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.api.harness import ORDER, WORKLOAD, make_tokens
from tests.api.service_process import process

from cliffwatch.model.settings import read_settings

#: Such a body took 1.3 GB before; a service that has just started has 0.2 GB.
MEMORY_LIMIT_MIB = 400
ANSWER_LIMIT_BYTES = 16 * 1024
ROOM = 1024 * 1024 - 1000


def _list_of(item: str) -> str:
    return "[" + ",".join([item] * ((ROOM - 2000) // (len(item) + 1))) + "]"


def _workload(**changes: str) -> str:
    return json.dumps(WORKLOAD)[:-1] + "".join(f', "{name}": {value}' for name, value in changes.items()) + "}"


def _yaml(text: str) -> str:
    return json.dumps({"yaml": text})


def _nested(opening: str, closing: str, times: int) -> str:
    return opening * times + "1" + closing * times


_BOMB = "a0: &a0 [x, x, x]\n" + "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 3)}]" for n in range(1, 7))
_STEADY = "version: 1\nname: steady\nengine: synthetic\nphases: {soak: 1m}\n"

#: To be validated, with a token that may do nothing else: what is sent, the code, and a word of the answer.
VALIDATED: dict[str, tuple[Callable[[], str], str, str]] = {
    "unknown keys": (lambda: "{" + ",".join(f'"{n:x}":0' for n in range(100_000)) + "}", "bad_request", "keys"),
    "numbers": (lambda: _workload(scrape=_list_of("0")), "bad_request", "more than 100000 values"),
    "objects": (lambda: _workload(scrape=_list_of("{}")), "bad_request", "more than 100000 values"),
    "some objects": (lambda: _workload(scrape="[" + ",".join(["{}"] * 9999) + "]"), "workload_invalid", "at most 50"),
    "some keys": (lambda: _workload(**{f"k{n}": "0" for n in range(900)}), "workload_invalid", "and 880 more faults"),
    "deep JSON": (lambda: _workload(load=_nested('{"a":', "}", 900)), "bad_request", "nested more than 64 deep"),
    "very deep JSON": (lambda: _workload(load=_nested('{"a":', "}", 100_000)), "bad_request", "nested too deep"),
    "not a number": (lambda: _workload(load='{"rate": NaN}'), "bad_request", "NaN is not a JSON number"),
    "endless": (lambda: _workload(load='{"rate": 1e999}'), "bad_request", "too large a number"),
    "long number": (lambda: _workload(window="9" * 5000), "bad_request", "digits"),
    "large number": (lambda: _workload(engine_restarts="9" * 1000), "bad_request", "more than 64 bits"),
    "twice": (lambda: _workload(name='"other"'), "bad_request", "'name' is there twice"),
    "long duration": (lambda: _workload(stop_grace=f'"{"9" * 60}h"'), "workload_invalid", "stop_grace"),
    "long text": (lambda: _workload(stop_grace=f'"{"9" * 900_000}h"'), "workload_invalid", "stop_grace"),
    "deep YAML": (lambda: _yaml("load: " + _nested("[", "]", 5000)), "workload_invalid", "nested more than 64 deep"),
    "aliases": (lambda: _yaml(f"{_STEADY}load: {{a: &a [x], b: [{', '.join(['*a'] * 30)}]}}"), "workload_invalid",
                "more than 20 aliases"),
    "bomb": (lambda: _yaml(_BOMB), "workload_invalid", "a6"),
    "itself": (lambda: _yaml(f"{_STEADY}load: &a {{a: *a}}"), "workload_invalid", "nested more than 64 deep"),
    "YAML twice": (lambda: _yaml(f"{_STEADY}name: other"), "workload_invalid", "'name' is there twice"),
    "long YAML": (lambda: _yaml("x: [" + "a," * 400_000 + "]"), "workload_invalid", "it may have 65536"),
    "YAML's numbers": (lambda: _yaml(f"version: {'9' * 5000}"), "workload_invalid", "cannot be read"),
    "no date": (lambda: _yaml("version: 2026-99-99"), "workload_invalid", "is no timestamp"),
    "a date": (lambda: _yaml(f"{_STEADY}load: {{at: 2026-01-01}}"), "workload_invalid", "quotes"),
    "YAML's infinity": (lambda: _yaml(f"{_STEADY}load: {{rate: .inf}}"), "workload_invalid", "finite"),
    "keys that are none": (lambda: _yaml("{1: 2, [1]: 3}"), "workload_invalid", "not YAML"),
}  # fmt: skip


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    settings = read_settings(state_directory=tmp_path_factory.mktemp("state"))
    tokens = make_tokens(settings)
    with process(settings) as (running, client):
        yield running, client, tokens


def _peak_mib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


def _send(service: Any, path: str, body: str, scope: str | None, method: str = "POST") -> httpx.Response:
    _, client, tokens = service
    headers = {"Content-Type": "application/json"}
    headers |= {"Authorization": f"Bearer {tokens[scope]}"} if scope else {}
    answer: httpx.Response = client.request(method, f"/api/v1{path}", content=body, headers=headers)
    return answer


def _require_modest(service: Any, answer: httpx.Response) -> None:
    assert len(answer.content) < ANSWER_LIMIT_BYTES
    assert len(answer.json()["errors"]) <= 21
    assert _peak_mib(service[0].pid) < MEMORY_LIMIT_MIB


@pytest.mark.parametrize("name", VALIDATED)
def test_a_document_that_costs_much_is_refused(service: Any, name: str) -> None:
    body, code, word = VALIDATED[name]
    answer = _send(service, "/workloads/validate", body(), "read")
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert word in answer.text
    _require_modest(service, answer)


BODIES: dict[str, tuple[str, str, Callable[[], str]]] = {
    "alerts": ("POST", "/alerts", lambda: '{"version": "4", "alerts": [' + ",".join(["{}"] * 9999) + "]}"),
    "servers": ("POST", "/runs/plan", lambda: json.dumps({**ORDER, "target": _broker(["-"] * 90_000, [])})),
    "directories": ("POST", "/runs/plan", lambda: json.dumps({**ORDER, "target": _broker(["a:1"], ["x"] * 90_000)})),
    "path": ("POST", "/runs", lambda: json.dumps({**ORDER, "target": {"kind": "directory", "path": "/" * 900_000}})),
    "durations": ("PUT", "/runs/one", lambda: json.dumps({**ORDER, "durations": {"soak": "9" * 500 + "h"}})),
    "trigger": ("POST", "/schedules", lambda: json.dumps({**ORDER, "name": "n", "trigger": {"kind": "x" * 900_000}})),
}


def _broker(servers: list[str], directories: list[str]) -> dict[str, Any]:
    return {"kind": "broker", "bootstrap_servers": servers, "data_directories": directories}


@pytest.mark.parametrize("name", BODIES)
def test_a_request_that_costs_much_is_refused(service: Any, name: str) -> None:
    method, path, body = BODIES[name]
    answer = _send(service, path, body(), "operate", method)
    assert answer.status_code == 422
    _require_modest(service, answer)


def test_authorization_is_checked_before_the_body(service: Any) -> None:
    for path in ("/runs", "/runs/plan", "/schedules", "/alerts", "/tokens"):
        for scope, status in ((None, 401), ("read", 403)):
            assert _send(service, path, '{"not": JSON', scope).status_code == status
    assert _send(service, "/workloads/x", "{", "read", "PUT").status_code == 403


def test_a_workload_with_a_yaml_anchor_or_a_long_description_is_valid(service: Any) -> None:
    shared = f"{_STEADY}load: {{operations_per_second: &rate 1000}}\ndescription: once\n"
    assert _send(service, "/workloads/validate", _yaml(shared), "read").status_code == 200
    whole = {**WORKLOAD, "description": "é" * 5000, "limits": ["p99 <= 2ms over any 10s"]}
    assert _send(service, "/workloads/validate", json.dumps(whole), "read").status_code == 200
