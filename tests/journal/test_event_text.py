"""Events in words: none of them shows a name of the journal to people."""

import ast
import importlib
import re
from pathlib import Path
from typing import Any

import pytest
from tests.journal.event_samples import AT_15, FINDING, RAW, SAMPLES

import cliffwatch
from cliffwatch.analysis.finding import FindingKind
from cliffwatch.journal.event_text import detail_text, event_text
from cliffwatch.journal.events import EventType
from cliffwatch.model.phase import Phase
from cliffwatch.model.run_state import RunState

SOURCES = Path(cliffwatch.__file__).parent
LOADS = SOURCES.parents[1] / "load"
#: The fields of an engine's event are not known beforehand.
ANY_DETAIL: dict[str, Any] = {
    "series": "publish.p99",
    "kind": "not_leader",
    "queue_seconds": 0.25,
    "size_bytes": 2048,
    "used_ratio": 0.25,
    "memory": {"hot_buffers": 1024, "retention_bytes": 4096},
    "partition_states": ["in_sync", "out_of_sync"],
}


def recorded_by_the_service() -> set[tuple[str, str]]:
    """Type and name of every event whose name stands in the source."""
    found = set()
    for path in sorted(SOURCES.rglob("*.py")):
        module = ".".join(("cliffwatch", *path.relative_to(SOURCES).with_suffix("").parts))
        for call in ast.walk(ast.parse(path.read_text())):
            for one, other in zip(call.args, call.args[1:], strict=False) if isinstance(call, ast.Call) else ():
                if isinstance(one, ast.Attribute) and ast.unparse(one).startswith("EventType."):
                    name = name_of(other, module)
                    if name is not None:
                        found.add((EventType[one.attr].value, name))
    return found


def name_of(argument: ast.expr, module: str) -> str | None:
    if isinstance(argument, ast.Constant):
        return str(argument.value)
    if isinstance(argument, ast.Name) and argument.id.isupper():
        value = getattr(importlib.import_module(module), argument.id)
        return value if isinstance(value, str) else None
    return None


def reported_by_engines() -> set[str]:
    python = re.compile(r'EngineEvent\([^,]+, "(\w+)"')
    rust = re.compile(r'(?:\.event|report|report_recurring)\(\s*"(\w+)"')
    found = {name for path in (SOURCES / "engines").rglob("*.py") for name in python.findall(path.read_text())}
    return found | {name for path in LOADS.rglob("*.rs") for name in rust.findall(path.read_text())}


def test_every_event_that_the_service_records_has_a_sentence_without_a_name_of_the_journal() -> None:
    recorded = {each for each in recorded_by_the_service() if each[0] not in {"state", "phase", "gap", "finding"}}
    assert len(recorded) > 25
    assert recorded <= set(SAMPLES), f"give each new event a sentence, and a sample here: {recorded - set(SAMPLES)}"
    for (kind, name), (detail, words) in SAMPLES.items():
        assert event_text(kind, name, detail) == words
        assert not RAW.search(words)


def test_every_event_of_an_engine_is_put_into_words_field_by_field() -> None:
    names = reported_by_engines()
    assert {"leader_changed", "verified", "snapshot_late"} <= names
    for name in sorted(names):
        text = event_text("engine", name, ANY_DETAIL)
        assert not RAW.search(text), text
    assert event_text("engine", "leader_changed", ANY_DETAIL) == (
        "leader changed: series publish p99, kind not leader, queue 250 ms, size 2.0 KiB, used 25 %, "
        "memory hot buffers 1,024 retention 4.0 KiB, partition states in sync out of sync"
    )


@pytest.mark.parametrize("state", RunState)
def test_a_state_is_reported_with_its_reason_and_the_end_with_its_verdict(state: RunState) -> None:
    detail = {"verdict": "pass", "reasons": ["fine"], "target_key": "drive:1:1", "request_digest": "ab"}
    text = event_text("state", state.value, detail)
    assert text == ("finished: pass" if state is RunState.FINISHED else state.value)
    assert event_text("state", "interrupted", {"reason": "the worker died"}) == "interrupted: the worker died"


def test_phases_gaps_findings_and_alerts_are_words() -> None:
    phases = [event_text("phase", phase.value, {"start": 1.0}) for phase in Phase]
    assert phases == ["prepare", "warm-up", "baseline", "soak", "cool-down"]
    assert event_text("gap", "engine_died", {"seconds": 2.5}) == "not measured for 2.5 s: the engine died"
    assert event_text("gap", "something_new", {"seconds": 90.0}) == "not measured for 1m30s: something new"
    assert event_text("finding", FindingKind.CLIFF, FINDING) == FINDING["summary"]


def test_of_several_parts_the_part_is_named_first() -> None:
    detail, words = SAMPLES["engine", "exited"]
    assert event_text("engine", "exited", {**detail, "part": "part-2"}) == f"part-2: {words}"
    assert event_text("gap", "engine_frozen", {"seconds": 2.5, "part": "part-1"}).startswith("part-1: not measured for")
    assert event_text("engine", "exited", {**detail, "part": "nvme3n1"}) == f"nvme3n1: {words}"
    # What an engine calls so may be no name of a part.
    assert event_text("engine", "of_its_own", {"part": "the lid"}) == "of its own: part the lid"


def test_an_alert_is_its_summary_and_what_its_description_adds() -> None:
    alert = {"summary": "The queue is full", "description": "Writes wait.", "labels": {"run_id": "r"}}
    assert event_text("alert", "QueueFull", alert) == "QueueFull: The queue is full. Writes wait."
    alike = {"summary": "The queue is full.", "description": "The queue is full."}
    assert event_text("alert", "QueueFull", alike) == "QueueFull: The queue is full."
    assert event_text("alert", "QueueFull", {}) == "QueueFull"
    over = alert | {"status": "resolved"}
    assert event_text("alert", "QueueFull", over) == "QueueFull: over; it said: The queue is full. Writes wait."
    assert event_text("alert", "QueueFull", {"status": "resolved"}) == "QueueFull: over"


def test_a_damaged_detail_is_put_into_words_field_by_field() -> None:
    assert event_text("note", "watchers", {"there": "damaged"}) == "watchers: there damaged"
    assert event_text("note", "load_moved", {"seconds": "soon_after"}) == "load moved: seconds soon after"


def test_values_are_written_in_the_unit_of_their_name_and_what_is_empty_is_left_out() -> None:
    detail = {"size_bytes": 2048, "pause_seconds": 1.5, "used_ratio": 0.25, "dirty_ratio": 20, "rotational": False}
    assert detail_text(detail) == "size 2.0 KiB, pause 1.5 s, used 25 %, dirty ratio 20, rotational no"
    assert detail_text({"start": AT_15, "reason": None, "message": ""}) == "start 15:00:00 UTC"


@pytest.mark.parametrize("value", [1e18, -1.0, 1e308, -1e308, 5e-324, 2**63, 2**1100, -(2**1100)])
@pytest.mark.parametrize("event_type", EventType)
def test_a_number_that_nothing_can_have_is_put_into_words(event_type: EventType, value: float) -> None:
    """An engine reports whatever it likes."""
    names = (
        "start",
        "load_start",
        "at",
        "size_bytes",
        "seconds",
        "wait_milliseconds",
        "share_ratio",
        "count",
        "windows",
    )
    detail = dict.fromkeys(names, value) | {"reason": "r", "message": "m"}
    for name in {"x", *(name for kind, name in SAMPLES if kind == event_type)}:
        assert event_text(event_type, name, detail)
        assert event_text(event_type, name, {"inner": detail, "list": [value], "summary": ""})
