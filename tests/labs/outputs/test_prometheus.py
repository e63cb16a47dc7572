"""Answers of Prometheus to range queries: series by name and label, units, steps without a value."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.labs.outputs.printed import text_of
from tests.labs.outputs.reading import first, read, refusal, verdict

from cliffwatch.labs.outputs.names import LatencyUnit, OutputFormat

PROMETHEUS = OutputFormat.PROMETHEUS
START = 1_790_000_000
STEPS = 120
P99 = {"__name__": "latency_p99_seconds"}
RATE = {"__name__": "requests_per_second"}


def answer(*series: tuple[dict[str, str], dict[int, Any]]) -> str:
    result = [
        {"metric": labels, "values": [[START + 10 * step, str(value)] for step, value in values.items()]}
        for labels, values in series
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def steady(level: float = 0.005, count: int = STEPS) -> dict[int, Any]:
    return {step: level * (1 + step % 5 / 100) for step in range(count)}


def counter(each: float, count: int = STEPS) -> dict[int, Any]:
    return {step: each * step for step in range(count)}


def test_a_steady_target_passes_and_a_slower_one_does_not(tmp_path: Path) -> None:
    rate = (RATE, dict.fromkeys(range(STEPS), 100))
    assert verdict(tmp_path / "p.json", PROMETHEUS, [answer((P99, steady()), rate)])[0] == "pass"
    slower = steady() | {step: 0.02 + step % 3 / 1000 for step in range(60, STEPS)}
    assert verdict(tmp_path / "p.json", PROMETHEUS, [answer((P99, slower), rate)])[0] == "degraded"


def test_answers_of_several_queries_are_one_table() -> None:
    output = read(PROMETHEUS, *text_of("prometheus-quantile.json"))
    assert {series.name for series in output.table.series} == {"p99", "operations_per_second"}
    assert output.table.window_seconds == 1


@pytest.mark.parametrize("name", ["quantile", "sums", "summary"])
def test_a_target_that_held_every_request_is_a_stall(tmp_path: Path, name: str) -> None:
    said, words = verdict(tmp_path / "p.json", PROMETHEUS, text_of(f"prometheus-{name}.json"))
    assert said == "degraded"
    assert "Nothing was completed for 1" in words


def test_a_mean_is_the_increase_of_the_sum_over_that_of_the_count(tmp_path: Path) -> None:
    labels = {"job": "a"}
    series = [
        ({"__name__": "rpc_seconds_sum"} | labels, counter(5.0)),
        ({"__name__": "rpc_seconds_count"} | labels, counter(1000)),
    ]
    samples = read(PROMETHEUS, answer(*series)).table.samples
    assert dict(samples[0].values) == pytest.approx({"mean": 0.005, "operations_per_second": 100})
    assert len(samples) == STEPS - 1
    assert verdict(tmp_path / "p.json", PROMETHEUS, [answer(*series)])[0] == "pass"


def test_series_that_differ_by_a_label_are_operations_of_their_own() -> None:
    series = [(P99 | {"job": "a", "node": node}, steady(level)) for node, level in (("x", 0.001), ("y", 0.002))]
    rates = [(RATE | {"job": "a", "node": node}, dict.fromkeys(range(STEPS), 50)) for node in ("x", "y")]
    values = first(read(PROMETHEUS, answer(*series, *rates))).values
    assert dict(values) == pytest.approx({"x.p99": 0.001, "y.p99": 0.002, "operations_per_second": 100})


@pytest.mark.parametrize(
    ("name", "value", "count"),
    [
        ("errors_total", counter(3), 3 * (STEPS - 1)),
        ("request_failures_total", counter(3), 3 * (STEPS - 1)),
        ("errors_per_second", dict.fromkeys(range(STEPS), 0.5), 5 * STEPS),
        ("http_errors:rate5m", dict.fromkeys(range(STEPS), 0.5), 5 * STEPS),
    ],
)
def test_errors_are_failed_operations_and_no_completed_ones(
    tmp_path: Path, name: str, value: dict[int, Any], count: int
) -> None:
    lines = [answer((P99, steady()), (RATE, dict.fromkeys(range(STEPS), 100)), ({"__name__": name}, value))]
    table = read(PROMETHEUS, *lines).table
    assert (table.errors, table.completed) == (count, 100 * 10 * STEPS)
    assert verdict(tmp_path / "p.json", PROMETHEUS, lines)[0] == "degraded"


def test_dropped_operations_are_skipped() -> None:
    table = read(PROMETHEUS, answer((P99, steady()), ({"__name__": "requests_dropped_total"}, counter(2)))).table
    assert table.skipped == 2 * (STEPS - 1)


def test_a_counter_that_was_reset_has_no_increase() -> None:
    values = counter(1000) | {step: 1000 * (step - 60) for step in range(60, STEPS)}
    table = read(PROMETHEUS, answer((P99, steady()), ({"__name__": "operations_total"}, values))).table
    rates = [sample.values.get("operations_per_second") for sample in table.samples]
    assert rates == [None, *[100.0] * 59, None, *[100.0] * 59]


def test_a_rate_of_several_counters_is_not_known_where_one_was_reset() -> None:
    reset = counter(1000) | {step: 1000 * (step - 60) + 58_500 for step in range(60, STEPS)}
    series = [
        ({"__name__": "operations_total", "node": node}, each) for node, each in (("x", reset), ("y", counter(1000)))
    ]
    table = read(PROMETHEUS, answer((P99, steady()), *series)).table
    rates = [sample.values.get("operations_per_second") for sample in table.samples]
    assert rates[59:62] == [200, None, 200]


@pytest.mark.parametrize("value", [None, "NaN", "+Inf", "-1"])
def test_steps_without_a_value_are_gaps(tmp_path: Path, value: str | None) -> None:
    values = steady() | dict.fromkeys(range(50, 60), value)
    values = {step: each for step, each in values.items() if each is not None}
    assert verdict(tmp_path / "p.json", PROMETHEUS, [answer((P99, values))])[0] == "invalid"


def test_a_quantile_of_nothing_beside_a_rate_of_zero_is_a_stall(tmp_path: Path) -> None:
    rate = dict.fromkeys(range(STEPS), 100) | dict.fromkeys(range(50, 60), 0)
    for values in (steady() | dict.fromkeys(range(50, 60), "NaN"), steady() | dict.fromkeys(range(50, 60), 0.005)):
        name, words = verdict(tmp_path / "p.json", PROMETHEUS, [answer((P99, values), (RATE, rate))])
        assert name == "degraded"
        assert "Nothing was completed for 1m40s" in words


@pytest.mark.parametrize(
    ("name", "seconds"), [("a_p99_seconds", 5), ("a:p99_ms", 5e-3), ("p99_microseconds", 5e-6), ("lat_ns_p99", 5e-9)]
)
def test_the_unit_is_that_of_the_name(name: str, seconds: float) -> None:
    assert first(read(PROMETHEUS, answer(({"__name__": name}, steady(5))))).values["p99"] == pytest.approx(seconds)


def test_a_unit_that_no_name_states_is_asked_for() -> None:
    lines = answer(({"__name__": "latency", "quantile": "0.99"}, steady(5)))
    assert "has no unit in the name of series latency; say it with `--latency-unit s`, or" in refusal(PROMETHEUS, lines)
    output = read(PROMETHEUS, lines, unit=LatencyUnit.MILLISECONDS)
    assert first(output).values["p99"] == pytest.approx(0.005)


def vector(kind: str) -> str:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": []}})


REFUSED = {
    "buckets": (
        answer(({"__name__": "a_bucket", "le": "1"}, counter(1))),
        "ask for `label_replace(histogram_quantile(",
    ),
    "no name": (
        answer(({"job": "a"}, steady())),
        'does not say whether series {"job": "a"} is a percentile, a mean or',
    ),
    "an instant": (
        vector("vector"),
        "has a result of type 'vector' and no matrix; ask /api/v1/query_range with a `step`",
    ),
    "an error": ('{"status":"error","errorType":"bad_data","error":"parse error"}', "is an error of Prometheus: parse"),
    "cut": (answer((P99, steady()))[:-5], "line 1: begins no JSON that can be read"),
    "a second": (f"{answer((P99, steady()))}\n{{", "line 2: begins no JSON that can be read"),
    "other steps": (
        answer((P99, steady())) + answer((RATE, dict.fromkeys(range(STEPS), 1))).replace('0, "', '3, "'),
        "has series of different times, closer than their step of 10 s; ask for one `step`",
    ),
    "no pair": (answer((P99, steady())).replace('"0.005"', "{}"), "has values of series latency_p99_seconds that are"),
    "nothing": (answer(), "has no window of prometheus; `/api/v1/query_range?query=…&start=…&end=…&step=10` has"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_answers_are_refused_with_what_to_ask_for(case: str) -> None:
    line, message = REFUSED[case]
    assert message in refusal(PROMETHEUS, *line.splitlines())


def test_native_histograms_are_refused_with_the_query_for_them() -> None:
    lines = answer(({"__name__": "rpc_seconds"}, steady())).replace('"values"', '"histograms"')
    assert "has native histograms of series rpc_seconds; ask for `label_replace(" in refusal(PROMETHEUS, lines)
