"""The tables in the documentation say what the code says."""

import re
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Union, get_args, get_origin

import pytest
from pydantic import BaseModel
from testkit.checkout import ROOT
from tests.docs.tables import table, tables

from cliffwatch.analysis.coverage import UNEXPLAINED
from cliffwatch.analysis.journal_series import STARTED_LATE
from cliffwatch.cli.reference import reference
from cliffwatch.coordinator import load
from cliffwatch.coordinator.commit import JOURNAL_FULL
from cliffwatch.engines.fio.load import FioLoad
from cliffwatch.engines.kafka.load import KafkaLoad
from cliffwatch.engines.storage.load import StorageLoad
from cliffwatch.engines.storage.style import StyleChanges
from cliffwatch.engines.synthetic import SyntheticLoad
from cliffwatch.labs.look_back.journal import NOT_SCRAPED
from cliffwatch.model.operation import Operation
from cliffwatch.model.phase import JUDGED_PHASES, UNJUDGED_PHASES, Phase
from cliffwatch.model.run_state import MEANINGS, TRANSITIONS, VerdictName
from cliffwatch.model.settings import PREFIX, Settings
from cliffwatch.model.window import NOTHING_PRINTED
from cliffwatch.model.workload import Phases, Workload
from cliffwatch.part.freezes import ENGINE_FROZEN, WORKER_FROZEN
from cliffwatch.report.gaps import LOAD_FAILED


def test_states_and_transitions_are_those_of_the_state_machine() -> None:
    stated = table("runs.md", "state", "meaning", "can become")
    assert list(stated) == [state.value for state in MEANINGS]
    for state, meaning in MEANINGS.items():
        options = ", ".join(option.value for option in MEANINGS if option in TRANSITIONS[state])
        assert stated[state.value] == [meaning, options or "–"]


def test_every_reason_of_a_gap_is_explained() -> None:
    of_load = {"engine_restarted", "worker_interrupted", "not_reported_by_engine"}
    assert all(f'"{reason}"' in Path(load.__file__).read_text() for reason in of_load)
    known = of_load | {
        STARTED_LATE,
        ENGINE_FROZEN,
        WORKER_FROZEN,
        JOURNAL_FULL,
        LOAD_FAILED,
        UNEXPLAINED,
        NOTHING_PRINTED,
        NOT_SCRAPED,
    }
    assert set(table("runs.md", "reason", "what happened")) == known


def test_phases_are_those_of_a_workload_after_preparing() -> None:
    assert list(table("runs.md", "phase", "what happens")) == [Phase.PREPARE, *Phases.model_fields]


def test_a_workload_has_a_length_for_each_phase_but_preparing() -> None:
    assert [Phase.PREPARE, *(name for name in Phases.model_fields if name != "steady")] == list(Phase)
    assert {*JUDGED_PHASES, *UNJUDGED_PHASES} == set(Phase)


def test_the_engine_contract_names_every_operation() -> None:
    contract = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    (named,) = re.findall(r"^- Latency names: ((?:`[a-z_]+`,?\s)+)", contract, re.MULTILINE)
    assert set(re.findall("`([a-z_]+)`", named)) == set(Operation)


def test_every_verdict_is_explained_with_its_exit_status() -> None:
    stated = table("runs.md", "verdict", "meaning", "exit status")
    assert {name: cells[1] for name, cells in stated.items()} == {
        name.value: "0" if name is VerdictName.PASS else "1" for name in VerdictName
    }


def test_every_setting_is_documented_by_its_variable() -> None:
    assert set(table("settings.md", "variable", "default", "meaning")) == {
        PREFIX + name.upper() for name in Settings.model_fields
    }


@pytest.mark.parametrize(("model", "position"), [(Workload, 0), (Phases, 1)])
def test_every_field_of_a_workload_is_documented(model: type[BaseModel], position: int) -> None:
    stated = tables("workloads.md", "field", "needed", "default", "meaning")[position]
    assert list(stated) == list(model.model_fields)
    needed = {name for name, cells in stated.items() if cells[0] == "yes"}
    assert needed == {name for name, field in model.model_fields.items() if field.is_required()}


@pytest.mark.parametrize(("model", "position"), [(FioLoad, 0), (StorageLoad, 1), (SyntheticLoad, 3)])
def test_every_field_of_an_engines_load_is_documented(model: type[BaseModel], position: int) -> None:
    assert list(tables("workloads.md", "field", "default", "meaning")[position]) == list(model.model_fields)


def fields_within(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """The names of a model's fields, those of models within after a dot, behind it where it may be left out."""
    for name, field in model.model_fields.items():
        path = prefix + (field.alias or name)
        is_union = get_origin(field.annotation) in (Union, UnionType)
        options = get_args(field.annotation) if is_union else (field.annotation,)
        inner = next((each for each in options if isinstance(each, type) and issubclass(each, BaseModel)), None)
        if inner is None or (field.default is None and not prefix):
            yield path
        if inner is not None:
            yield from fields_within(inner, f"{path}.")


def test_every_field_of_a_kafka_load_is_documented() -> None:
    assert list(tables("workloads.md", "field", "default", "meaning")[2]) == list(fields_within(KafkaLoad))


def test_every_parameter_of_a_storage_style_is_documented() -> None:
    stated = table("engines/storage.md", "parameter", "kafka", "redpanda", "bookkeeper")
    assert list(stated) == list(StyleChanges.model_fields)


def test_documented_defaults_of_a_workload_are_the_models() -> None:
    document = {"version": 1, "name": "any", "engine": "synthetic", "phases": {"soak": "1h"}}
    filled = Workload.model_validate(document).model_dump(mode="json")
    for position, values in enumerate((filled, filled["phases"])):
        for name, cells in tables("workloads.md", "field", "needed", "default", "meaning")[position].items():
            stated = cells[1].strip("`")
            if cells[0] != "yes":
                assert stated == "empty" or stated.replace("60s", "1m") == str(values[name]), name


def test_the_cli_page_is_what_the_commands_say() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert page == reference(), "write it anew with `make docs`"
