"""Requests that schemathesis generates from the API's document, sent to a real service, and what answers must be."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import schemathesis
from hypothesis import strategies as st
from schemathesis import APIOperation, Case, GenerationMode, SerializationContext
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from testkit.service import Service
from testkit.waiting import wait_until
from tests.api.harness import WORKLOAD, scope_of
from tests.api.problems import check

from cliffwatch.base.errors import Code
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.http.problems import MEDIA_TYPE
from cliffwatch.server.openapi import GOLDEN

Operation = APIOperation[Any, Any, Any, Any]
GeneratedCase = Case[Any]
DOCUMENT = json.loads(GOLDEN.read_text())
SCOPES = ("read", "operate", "admin")
#: Callers without a valid token.
STRANGERS = ("no token", "revoked")
SECONDS = 30
_CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
#: Answers that never end, of runs that are there.
_ENDLESS = "follow_run"


@schemathesis.serializer("application/zstd")
def _as_it_is(context: SerializationContext, value: Any) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def operations() -> list[Operation]:
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    found = [each.ok() for each in schema.get_all_operations() if isinstance(each, Ok)]
    assert len(found) == sum(len(methods) for methods in DOCUMENT["paths"].values())
    return found


def needs(operation: Operation) -> str | None:
    """The scope that an operation asks for; None where it asks for none."""
    is_protected = operation.path.startswith("/api/")
    return scope_of(operation.method.upper(), operation.path) if is_protected else None


def cases(operation: Operation) -> st.SearchStrategy[GeneratedCase]:
    """Valid requests and invalid ones."""
    return st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode))


#: Bodies that are taken, with every operation that has one: generated ones seldom are.
ORDER = {"workload": {**WORKLOAD, "phases": {"soak": "2s"}}, "target": {"kind": "synthetic", "name": "generated"}}
TAKEN: dict[str, dict[str, Any]] = {
    "create_run": ORDER,
    "put_run": ORDER,
    "plan_run": ORDER,
    "create_schedule": {**ORDER, "name": "generated", "trigger": {"kind": "interval", "every": "1h"}},
    "change_schedule": {"enabled": False},
    "validate_workload": WORKLOAD,
    "put_workload_version": {**WORKLOAD, "name": "generated"},
    "make_token": {"name": "generated", "scope": "read"},
    "stop_run": {"force": True},
    "take_alerts": {"version": "4", "alerts": []},
}


@dataclass(slots=True)
class Known:
    """Names of what there is, for paths: by the parameter, those that answers gave."""

    names: dict[str, list[str]] = field(default_factory=lambda: {"name": ["generated"]})

    def learn(self, operation_id: str, answer: httpx.Response) -> None:
        makers = {"create_run": "run_id", "put_run": "run_id", "create_schedule": "schedule_id"}
        makers |= {"make_token": "token_id", "put_workload_version": "name"}
        if operation_id in makers and answer.status_code in (200, 201):
            body, parameter = answer.json(), makers[operation_id]
            name = body.get(parameter) or body.get("id") or body.get("name")
            self.names.setdefault(parameter, []).append(str(name))


class Caller:
    """Sends cases to a service in every role, and holds each answer against the document."""

    def __init__(self, service: Service, place: Path) -> None:
        self._service = service
        self._place = place
        self.known = Known()
        self.answers: dict[str, set[int]] = {}
        self._tokens = {scope: self._made(scope)["token"] for scope in SCOPES}
        revoked = self._made("admin")
        self._tokens["revoked"] = revoked["token"]
        service.client.delete(f"/api/v1/tokens/{revoked['id']}").raise_for_status()

    def _made(self, scope: str) -> dict[str, str]:
        answer = self._service.client.post("/api/v1/tokens", json={"name": f"of {scope}", "scope": scope})
        body: dict[str, str] = answer.raise_for_status().json()
        return body

    def send(self, operation: Operation, case: GeneratedCase, role: str, like: int) -> None:
        """`like` chooses whether a body that is taken, and a name that is there, stand in the generated one's place."""
        name = operation.definition.raw["operationId"]
        self._settle(case, name, like)
        found = self._ask(case, {"Authorization": f"Bearer {self._tokens[role]}"} if role in self._tokens else {})
        self.answers.setdefault(name, set()).add(found.status_code)
        self._judge(operation, role, found)
        case.validate_response(found, checks=_CHECKS)
        self.known.learn(name, found)

    def _ask(self, case: GeneratedCase, given: dict[str, str]) -> httpx.Response:
        wanted = case.as_transport_kwargs(base_url=str(self._service.client.base_url))
        headers = {key: value for key, value in wanted["headers"].items() if key.lower() != "authorization"} | given
        sent = {"json": wanted["json"]} if "json" in wanted else {"content": wanted.get("data")}
        with httpx.Client(trust_env=False, timeout=SECONDS) as client:
            return client.request(
                wanted["method"],
                wanted["url"],
                params=wanted.get("params") or None,
                headers={key: str(value).encode("utf-8", "replace") for key, value in headers.items()},
                **sent,
            )

    def _settle(self, case: GeneratedCase, name: str, like: int) -> None:
        """Nothing that is generated leads to a drive, to a directory of this machine or to another host."""
        if like % 3 == 0 and name in TAKEN:
            case.body, case.media_type = json.loads(json.dumps(TAKEN[name])), "application/json"
        case.body = harmless(case.body, self._place)
        for parameter in case.path_parameters or {}:
            there = self.known.names.get(parameter, [])
            if like % 2 == 0 and there and name != _ENDLESS:
                case.path_parameters[parameter] = there[like % len(there)]

    def _judge(self, operation: Operation, role: str, answer: httpx.Response) -> None:
        assert answer.status_code < 500, answer.text
        scope = needs(operation)
        allowed = scope is None or (role in SCOPES and SCOPES.index(role) >= SCOPES.index(scope))
        if answer.status_code >= 400:
            assert answer.headers["content-type"] == MEDIA_TYPE
            check(answer, Code(answer.json()["code"]), operation.definition.raw)
        if not allowed:
            assert answer.status_code == (401 if role in STRANGERS else 403), answer.text
        else:
            assert answer.status_code not in (401, 403), answer.text

    def there(self) -> dict[str, list[str]]:
        """What a caller without the right to change anything must not have changed."""
        return {
            kind: sorted(f"{item.get('id', item.get('name'))} {item.get('version')}" for item in self._items(kind))
            for kind in ("runs", "workloads", "schedules", "tokens")
        }

    def end_runs(self) -> None:
        """Have every run end now; returns when all are over."""
        for item in self._items("schedules"):
            self._service.client.delete(f"/api/v1/schedules/{item['id']}")
        for item in self._unfinished():
            self._service.client.post(f"/api/v1/runs/{item['id']}/stop", json={"force": True})
        wait_until(lambda: not self._unfinished(), lambda: f"these do not end: {self._unfinished()}")

    def workers(self) -> list[ProcessIdentity]:
        """Of all runs that there are."""
        found = [Heartbeat.read(directory) for directory in (self._service.state_directory / "runs").iterdir()]
        return [heartbeat.worker for heartbeat in found if heartbeat is not None]

    def _unfinished(self) -> list[dict[str, Any]]:
        return [item for item in self._items("runs") if item["state"] != "finished"]

    def _items(self, kind: str) -> list[dict[str, Any]]:
        answer = self._service.client.get(f"/api/v1/{kind}", params={"limit": 500})
        items: list[dict[str, Any]] = answer.raise_for_status().json()["items"]
        return items

    def peak_mib(self) -> int:
        lines = Path(f"/proc/{self._service.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


def harmless(body: Any, place: Path) -> Any:
    """The document with other targets: no drive that is there, a directory that is not, and no broker but here."""
    if isinstance(body, list):
        return [harmless(each, place) for each in body]
    if not isinstance(body, dict):
        return body
    replaced: dict[str, Callable[[str], Any]] = {
        "identity": lambda text: f"no-such-drive-{text}",
        "path": lambda text: f"{place}/nothing/{text}" if text.startswith("/") else text,
        "bootstrap_servers": lambda text: "127.0.0.1:1",
        "data_directories": lambda text: f"{place}/nothing",
        "yaml": lambda text: text,
    }
    found: dict[str, Any] = {}
    for key, value in body.items():
        change = replaced.get(key)
        if change is not None and isinstance(value, str):
            found[key] = change(value)
        elif change is not None and isinstance(value, list):
            found[key] = [change(each) if isinstance(each, str) else each for each in value]
        else:
            found[key] = harmless(value, place)
    if found.get("kind") == "synthetic" and "name" in found:
        # One name, so that one run is executed at a time.
        found["name"] = "generated" if isinstance(found["name"], str) and found["name"] else found["name"]
    return found


def processes_in(directory: Path) -> list[int]:
    """Processes whose command names the directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(directory).encode() in command:
                found.append(int(entry.name))
    return found
