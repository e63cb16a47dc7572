"""The load of the observe engine: which selectors and units it takes."""

from typing import Any

import pytest

from cliffwatch.base.errors import Problem
from cliffwatch.engines.observe import LatencySource, ObserveLoad
from cliffwatch.engines.registry import checked_workload

WORKLOAD: dict[str, Any] = {
    "version": 1,
    "name": "watched",
    "engine": "observe",
    "window": "10s",
    "phases": {"soak": "48h"},
    "limits": ["p99 of publish <= 50ms over any 10m"],
    "load": {"latency": {"publish": {"histogram": 'latency_seconds{request="produce"}'}}},
}


@pytest.mark.parametrize(
    ("source", "buckets", "unit_seconds"),
    [
        ({"histogram": "latency_seconds"}, '{__name__=~"latency_seconds|latency_seconds_bucket"}', 1.0),
        (
            {"histogram": ' latency_seconds_bucket{a="}"} '},
            '{__name__=~"latency_seconds|latency_seconds_bucket",a="}"}',
            1.0,
        ),
        ({"histogram": "odd_seconds{}", "unit": "seconds"}, '{__name__=~"odd_seconds|odd_seconds_bucket"}', 1.0),
        (
            {"histogram": "write_latency", "unit": "microseconds"},
            '{__name__=~"write_latency|write_latency_bucket"}',
            1e-6,
        ),
        (
            {"histogram": "fsync_duration_milliseconds"},
            '{__name__=~"fsync_duration_milliseconds|fsync_duration_milliseconds_bucket"}',
            1e-3,
        ),
        ({"histogram": "odd_seconds", "unit": "milliseconds"}, '{__name__=~"odd_seconds|odd_seconds_bucket"}', 1e-3),
    ],
)
def test_a_histogram_is_asked_for_as_a_classic_and_as_a_native_one_and_has_a_unit(
    source: dict[str, str], buckets: str, unit_seconds: float
) -> None:
    read = LatencySource.model_validate(source)
    assert (read.buckets, read.unit_seconds) == (buckets, unit_seconds)


def test_a_workload_that_observes_is_taken() -> None:
    assert checked_workload(WORKLOAD).engine == "observe"


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"latency": {}}, "load.latency", ""),
        ({"latency": {"compaction": {"histogram": "a_seconds"}}}, "load.latency.compaction", "publish"),
        ({"latency": {"sync": {"histogram": "a"}}}, "load.latency.sync", "add `unit: seconds`"),
        ({"latency": {"sync": {"quantiles": {"p99": "a"}}}}, "load.latency.sync", "quantiles have none in their names"),
        (
            {"latency": {"sync": {"quantiles": {"p98": "a"}, "unit": "seconds"}}},
            "load.latency.sync",
            "is not one of p50",
        ),
        ({"latency": {"sync": {}}}, "load.latency.sync", "give a `histogram`, or `quantiles`"),
        (
            {"latency": {"sync": {"histogram": "a_seconds", "quantiles": {"p99": "a"}}}},
            "load.latency.sync",
            "give a `histogram`, or `quantiles`",
        ),
        (
            {"latency": {"sync": {"quantiles": {"p99": "a"}, "unit": "seconds"}}},
            "load",
            "name a counter of `operations`",
        ),
        ({"latency": {"sync": {"histogram": "rate(a_seconds[1m])"}}}, "load.latency.sync.histogram", "no function"),
        ({"operations": "sum(a)"}, "load.operations", "write a metric and its labels"),
        ({"rate": "a"}, "load.rate", ""),
    ],
)
def test_an_invalid_observe_load_is_refused_by_field(change: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(Problem) as refused:
        checked_workload(WORKLOAD | {"load": WORKLOAD["load"] | change})
    faults = {fault.field: fault.message for fault in refused.value.faults}
    assert [name for name in faults if name.startswith(field)], faults
    assert said in " ".join(faults.values())


def test_a_load_without_errors_says_that_none_are_seen() -> None:
    from cliffwatch.engines.observe import _notes

    load = ObserveLoad.model_validate(WORKLOAD["load"])
    assert any("errors are not observed" in note for note in _notes(load))
    assert not any("errors" in note for note in _notes(load.model_copy(update={"errors": "a_total"})))
