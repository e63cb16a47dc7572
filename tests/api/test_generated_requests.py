"""Generated requests in every role: answers are as the API's document says, and no role exceeds its rights."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import strategies as st
from schemathesis import GenerationMode
from testkit.service import Service
from testkit.waiting import wait_until
from tests.api.generated_requests import (
    SCOPES,
    STRANGERS,
    TAKEN,
    Caller,
    GeneratedCase,
    Operation,
    cases,
    harmless,
    needs,
    operations,
    processes_in,
)
from tests.fuzz.explore import Property, explore, holds

OPERATIONS = operations()
#: A service that has just started has 0.2 GB.
MEMORY_LIMIT_MIB = 500


@pytest.fixture
def caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Caller]:
    """A service, workers and all; at the end no process of it is there, and it was still answering."""
    monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_URL", "")
    with Service(tmp_path / "state") as service:
        caller = Caller(service, tmp_path)
        yield caller
        try:
            caller.end_runs()
            assert service.client.get("/healthz").status_code == 200
            assert caller.peak_mib() < MEMORY_LIMIT_MIB
        finally:
            workers = caller.workers()
    for worker in workers:
        wait_until(lambda worker=worker: not worker.is_alive(), "a worker does not end")  # type: ignore[misc]
    assert processes_in(tmp_path) == []


def property_of(
    caller: Caller,
    operation: Operation,
    roles: Sequence[str],
    examples: int,
    generated: st.SearchStrategy[GeneratedCase] | None = None,
    like: int | None = None,
) -> Property:
    """Each answer of this operation in one of these roles is right."""

    def answered(case: GeneratedCase, role: str, like: int) -> None:
        caller.send(operation, case, role, like)

    answered.__name__ = answered.__qualname__ = str(operation.definition.raw["operationId"])
    likes = st.integers(0, 11) if like is None else st.just(like)
    case = cases(operation) if generated is None else generated
    return holds(examples, case=case, role=st.sampled_from(roles), like=likes)(answered)


def too_weak(operation: Operation) -> Sequence[str]:
    """Roles that may not do this."""
    scope = needs(operation)
    return () if scope is None else (*STRANGERS, *SCOPES[: SCOPES.index(scope)])


def test_every_answer_is_what_the_document_says(caller: Caller) -> None:
    for operation in OPERATIONS:
        if operation.definition.raw["operationId"] in TAKEN:
            valid = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
            property_of(caller, operation, ["admin"], 1, valid, like=0)()
    for operation in OPERATIONS:
        property_of(caller, operation, SCOPES, 4)()
    before = caller.there()
    for operation in OPERATIONS:
        if roles := too_weak(operation):
            property_of(caller, operation, roles, 3)()
    assert caller.there() == before
    # What could only be refused would prove little.
    assert [name for name in TAKEN if not any(status < 300 for status in caller.answers[name])] == []


@pytest.mark.real(why="requests at random, by everyone")
def test_requests_at_random(caller: Caller) -> None:
    explore(*(property_of(caller, operation, (*STRANGERS, *SCOPES), 10) for operation in OPERATIONS))


def test_no_generated_target_is_one_of_this_machine(tmp_path: Path) -> None:
    drive = {"kind": "device", "identity": "S1", "confirmation": "erase S1"}
    assert harmless({"target": drive}, tmp_path)["target"]["identity"] == "no-such-drive-S1"
    directory = harmless([{"target": {"kind": "directory", "path": "/"}}], tmp_path)[0]["target"]["path"]
    assert directory.startswith(f"{tmp_path}/nothing")
    assert not (tmp_path / "nothing").exists()
