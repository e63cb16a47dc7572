"""What is wrong with a document is said with what was typed and what was meant."""

from typing import Any

import pytest

from cliffwatch.base.errors import Problem
from cliffwatch.base.suggestion import did_you_mean
from cliffwatch.engines.registry import checked_workload
from cliffwatch.model.target import parse_target

DOCUMENT: dict[str, Any] = {
    "version": 1,
    "name": "mine",
    "engine": "kafka",
    "phases": {"soak": "1h"},
    "load": {"producer": {}},
}


def faults(**changes: Any) -> dict[str, str]:
    with pytest.raises(Problem) as refused:
        checked_workload(DOCUMENT | changes)
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
        ({"phases": {"soak": "1h", "x": "1m"}}, "phases.x", "known keys: warm_up, steady, baseline, soak, cool_down"),
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
        ({"name": "Kafka Soak"}, "name", "'Kafka Soak' is not a name; use up to 63 of"),
        ({"scrape": [{"job": "Red Panda", "targets": ["a:1"]}]}, "scrape.0.job", "'Red Panda' has characters that it"),
        ({"limits": [{"p99": "20ms"}]}, "limits.0", "one line of text, not a mapping; write one such as `p99 <= 20ms"),
        ({"limits": {"p99": "20ms"}}, "limits", "a list, not a mapping; write each as one line of text"),
        ({"limits": "p99 <= 20ms"}, "limits", "write ['p99 <= 20ms']"),
        ({"limits": ["no cliff", "p99 of publsh <= 3ms"]}, "limits.1", "no latency 'publsh'; did you mean 'publish'?"),
        ({"limits": ["p99 of append <= 3ms"]}, "limits.0", "has no latency 'append'"),
        (
            {"engine": "kafka", "limits": ["p99 of sync <= 3ms"]},
            "limits.0",
            "kafka has no latency 'sync'; latencies: publish, publish_service, end_to_end",
        ),
        (
            {"engine": "storage", "load": {"style": "redpanda", "rate": "1MB", "retention_size": "1MiB"}},
            "load.retention_size",
            "logs of two segments",
        ),
        ({"description": {"a": 1}}, "description", "is a mapping; write it as one line of text"),
    ],
)
def test_a_fault_names_what_was_typed_and_what_would_be_right(
    changes: dict[str, Any], field: str, message: str
) -> None:
    assert message in faults(**changes)[field]


def test_one_refusal_names_the_faults_of_the_document_of_its_engine_and_of_each_limit() -> None:
    found = faults(engine="synthetic", windw="1s", load={"time": "virtul"}, limits=["p99 < 2ms", "no cliff", "no clif"])
    assert list(found) == ["limits.0", "limits.2", "windw", "load.time"]
    assert found["limits.2"] == "'no clif': 'clif' is not a finding; did you mean 'cliff'?"
    assert list(faults(engine="kafak", windw="1s")) == ["windw", "engine"]
    assert list(faults(engine=7, load=[])) == ["engine", "load"]
    assert list(faults(engine="synthetic", load=[])) == ["load"]


@pytest.mark.parametrize(
    ("load", "place", "meant"),
    [
        ({"style_changes": {"segment_bytes": "1GiB"}}, "load.style_changes.segment_bytes", "segment_size"),
        ({"segment_bytes": "1GiB"}, "load.segment_bytes", "style_changes.segment_size"),
        ({"retention_bytes": "1GiB"}, "load.retention_bytes", "retention_size"),
        ({"partition": 3}, "load.partition", "partitions"),
    ],
)
def test_a_size_that_is_named_for_its_unit_is_found_also_one_level_below(
    load: dict[str, Any], place: str, meant: str
) -> None:
    found = faults(engine="storage", load={"style": "kafka", "rate": "10MB"} | load)
    assert found[place] == f"unknown key; did you mean {meant!r}?"


def test_long_input_is_truncated_in_the_fault() -> None:
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
    # Comparing long names takes minutes, and such a name is not mistyped.
    name = "a" * 100
    assert did_you_mean(name, [name]) == f"; did you mean {name!r}?"
    assert did_you_mean(f"{name}a", [name]) == ""
