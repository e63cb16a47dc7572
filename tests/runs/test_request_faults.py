"""What is wrong with a document is said with what was typed and what was meant."""

from typing import Any

import pytest

from cliffwatch.engines.registry import load_of
from cliffwatch.errors import Problem
from cliffwatch.runs.specification import parse_target, workload_from
from cliffwatch.suggestion import did_you_mean

DOCUMENT: dict[str, Any] = {
    "version": 1,
    "name": "mine",
    "engine": "kafka",
    "phases": {"soak": "1h"},
    "load": {"producer": {}},
}


def faults(**changes: Any) -> dict[str, str]:
    with pytest.raises(Problem) as refused:
        load_of(workload_from(DOCUMENT | changes))
    return {fault.field: fault.message for fault in refused.value.faults}


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"lode": {}}, "lode", "unknown key; did you mean 'load'?"),
        ({"phases": {"soak": "1h", "warmup": "1m"}}, "phases.warmup", "unknown key; did you mean 'warm_up'?"),
        ({"phases": {"soak": "1h", "steady": {"maximum": "1h", "rounds": "1m"}}}, "phases.steady.rounds", "'round'"),
        ({"scrape": [{"job": "a", "targets": ["a:1"], "paht": "/"}]}, "scrape.0.paht", "did you mean 'path'?"),
        ({"load": {"producer": {"recordsize": "1KiB"}}}, "load.producer.recordsize", "did you mean 'record_size'?"),
        ({"load": {"consumer": {"form": "latest"}}}, "load.consumer.form", "did you mean 'from'?"),
        ({"load": {"consumer": {"pauses": [{"fro": "1s"}]}}}, "load.consumer.pauses.0.fro", "did you mean 'for'?"),
        ({"phases": {"soak": "1h", "x": "1m"}}, "phases.x", "there are: warm_up, steady, baseline, soak, cool_down"),
        ({"phases": {"soak": "36 hours"}}, "phases.soak", "'36 hours' is not a duration; write a number with ms, s,"),
        ({"on_interruption": "resum"}, "on_interruption", "'resum' is not one of resume, end; did you mean 'resume'?"),
        ({"engine_restarts": "many"}, "engine_restarts", "'many' is not a whole number"),
        ({"engine_restarts": -1}, "engine_restarts", "-1 is out of range; write at least 0"),
        ({"free_space_reserve_ratio": "half"}, "free_space_reserve_ratio", "'half' is not a number"),
        ({"description": 7}, "description", "7 is not text"),
        ({"scrape": "a:1"}, "scrape", "'a:1' is not a list"),
        ({"load": {"producer": []}}, "load.producer", "[] is not a mapping of keys to values"),
        ({"engine": "kafak"}, "engine", "there is no engine 'kafak'; did you mean 'kafka'?"),
        ({"phases": {}}, "phases.soak", "missing"),
    ],
)
def test_a_fault_names_what_was_typed_and_what_would_be_right(
    changes: dict[str, Any], field: str, message: str
) -> None:
    assert message in faults(**changes)[field]


def test_what_was_typed_is_cut_where_it_is_long() -> None:
    assert len(faults(engine_restarts="9" * 10_000 + "x")["engine_restarts"]) < 120


def test_a_kind_of_target_that_is_none_comes_with_the_one_that_was_meant() -> None:
    with pytest.raises(Problem, match="'dir:/a' is not a target; write directory:/path, device:SERIAL"):
        parse_target("dir:/a")
    with pytest.raises(Problem, match="did you mean 'broker'"):
        parse_target("brokers:a:9092")


def test_a_suggestion_is_close_or_none() -> None:
    assert did_you_mean("Quick_Soak", ["quick-soak", "drill"]) == "; did you mean 'quick-soak'?"
    assert did_you_mean("xyz", ["quick-soak", "drill"]) == ""
    assert did_you_mean("xyz", []) == ""
