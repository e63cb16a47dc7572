"""latte: the log of its samples, and its JSON report of the same."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.labs.outputs.printed import text_of
from tests.labs.outputs.reading import first, read, refusal, verdict

from cliffwatch.labs.outputs.names import OutputFormat

LATTE = OutputFormat.LATTE
HEAD = [
    f"LOG {'═' * 120}",
    f"    Time    Cycles    Errors    Thrpt.     {'─' * 34} Latency [ms/op] {'─' * 30}",
    "     [s]      [op]      [op]    [op/s]             Min        25        50        75        90        99      99.9"
    "       Max",
]
PERCENTS = [0.0, 1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.9, 99.99, 100.0]
FACTORS = [0.2, 0.3, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 9.0, 10.0]


def values(second: int, cycles: int, milliseconds: float) -> list[float]:
    return [milliseconds * factor * (1 + second % 5 / 50) if cycles else 0.0 for factor in FACTORS]


def line(second: int, cycles: int = 200, errors: int = 0, milliseconds: float = 2.0) -> str:
    found = dict(zip(PERCENTS, values(second, cycles, milliseconds), strict=True))
    latencies = " ".join(f"{found[percent]:9.1f}" for percent in (0.0, 25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 100.0))
    return f"{second + 0.001:8.3f} {cycles:9d} {errors:9d} {cycles:9d}       {latencies}"


def steady(begin: int = 1, end: int = 121) -> list[str]:
    return [line(second) for second in range(begin, end)]


def summary(cycles: int, errors: int = 0) -> list[str]:
    return [
        "",
        f"SUMMARY STATS {'═' * 110}",
        f"    Elapsed time       [s]    {120.0:9.3f}" + " " * 40,
        f"          Cycles      [op]  {cycles:>9}" + " " * 60,
        f"          Errors      [op]  {errors:>9}" + " " * 60,
        "              └─       [%]        0.0",
    ]


def distribution(second: int, cycles: int, milliseconds: float) -> dict[str, Any]:
    found = values(second, cycles, milliseconds)
    percentiles = [{"n": 100, "value": value, "std_err": None} for value in found]
    return {"mean": {"n": 1, "value": 1.2 * found[6], "std_err": None}, "percentiles": percentiles}


def sample(second: int, cycles: int = 200, errors: int = 0, milliseconds: float = 2.0) -> dict[str, Any]:
    return {
        "time_s": second - 1.0,
        "duration_s": 1.0,
        "cycle_count": cycles,
        "cycle_error_count": errors,
        "cycle_latency": distribution(second, cycles, milliseconds),
        "cycle_latency_by_fn": {"run": distribution(second, cycles, milliseconds)},
    }


def report(samples: list[dict[str, Any]], cycles: int | None = None, errors: int | None = None) -> list[str]:
    result = {
        "cycle_count": sum(each["cycle_count"] for each in samples) if cycles is None else cycles,
        "requests_per_cycle": 1.0,
        "error_count": sum(each["cycle_error_count"] for each in samples) if errors is None else errors,
        "log": samples,
    }
    return json.dumps({"conf": {}, "percentiles": PERCENTS, "result": result}, indent=2).splitlines()


def samples(begin: int = 1, end: int = 121, **others: Any) -> list[dict[str, Any]]:
    return [sample(second, **others) for second in range(begin, end)]


def test_windows_have_the_figures_of_the_log() -> None:
    output = read(LATTE, *HEAD, *steady(), *summary(24_000))
    expected = {"p50": 0.002, "p90": 0.0041, "p99": 0.0082, "p999": 0.0122, "max": 0.0204}
    assert dict(first(output).values) == pytest.approx(expected | {"operations_per_second": 200}, rel=0.02)
    assert output.operations == output.table.completed == 24_000
    assert [each.end for each in output.table.samples[:2]] == pytest.approx([1, 2])


def test_windows_have_the_figures_of_the_report() -> None:
    output = read(LATTE, *report(samples()))
    values = dict(first(output).values)
    assert values["mean"] == pytest.approx(0.0012 * 2 * 1.02)
    assert {"p50", "p90", "p95", "p99", "p999", "p9999", "max", "operations_per_second"} < set(values)
    assert values["p9999"] == pytest.approx(0.018 * 1.02)
    assert output.operations == output.table.completed == 24_000


def test_functions_of_a_mix_have_columns_of_their_own() -> None:
    mixed = samples()
    for each in mixed:
        each["cycle_latency_by_fn"]["read"] = distribution(1, 100, 1.0)
    values = first(read(LATTE, *report(mixed))).values
    assert values["read.p50"] == pytest.approx(0.00102)
    assert values["run.p50"] == values["p50"]


@pytest.mark.parametrize("form", ["log", "report"])
def test_a_steady_target_passes_and_a_slower_one_does_not(tmp_path: Path, form: str) -> None:
    steadily, slower = steady(), [line(second, milliseconds=8) for second in range(121, 241)]
    lines = [*HEAD, *steadily], [*HEAD, *steadily, *slower]
    if form == "report":
        lines = report(samples()), report([*samples(), *samples(121, 241, milliseconds=8.0)])
    assert verdict(tmp_path / "l.txt", LATTE, lines[0])[0] == "pass"
    assert verdict(tmp_path / "l.txt", LATTE, lines[1])[0] == "degraded"


@pytest.mark.parametrize("form", ["log", "report"])
def test_samples_without_cycles_are_a_stall(tmp_path: Path, form: str) -> None:
    lines = [*HEAD, *steady(1, 61), *(line(second, 0) for second in range(61, 75)), *steady(75, 135)]
    if form == "report":
        lines = report([*samples(1, 61), *samples(61, 75, cycles=0), *samples(75, 135)])
    assert dict(read(LATTE, *lines).table.samples[62].values) == {"operations_per_second": 0}
    assert verdict(tmp_path / "l.txt", LATTE, lines)[0] == "degraded"


def test_lines_that_are_absent_are_a_gap(tmp_path: Path) -> None:
    lines = [*HEAD, *steady(1, 61), *steady(64, 121)]
    found = read(LATTE, *lines).table.samples
    assert [(each.start, each.end) for each in found[59:61]] == [pytest.approx((59, 60)), pytest.approx((63, 64))]
    assert found[60].values["operations_per_second"] == pytest.approx(200)
    assert verdict(tmp_path / "l.txt", LATTE, lines)[0] == "invalid"
    words = refusal(LATTE, *lines, *summary(24_000))
    assert "states 24,000 cycles in all, and the lines before it add up to 23,400" in words


@pytest.mark.parametrize("form", ["log", "report"])
def test_errors_are_counted_and_agree_with_the_total(tmp_path: Path, form: str) -> None:
    lines, other = ([*HEAD, *steady(1, 120), line(120, 200, 3), *summary(24_000, errors)] for errors in (3, 9))
    if form == "report":
        failing = [*samples(1, 120), sample(120, 200, 3)]
        lines, other = report(failing), report(failing, errors=9)
    output = read(LATTE, *lines)
    assert (output.operations, output.table.errors) == (23_997, 3)
    assert verdict(tmp_path / "l.txt", LATTE, lines)[0] == "degraded"
    assert "states 9 errors in all, and the lines before it add up to 3" in refusal(LATTE, *other)


REFUSED = {
    "cut": (
        [*HEAD, *steady(), "  121.001       200   "],
        "line 124: is a line of a sample that cannot be read: '  121",
    ),
    "two runs": ([*HEAD, *steady(), *HEAD, *steady()], "line 127: is at 1.001 s, after one at 120.001 s in line 123;"),
    "errors": ([*HEAD, line(1, 3, 7)], "line 4: has 7 errors among 3 cycles; give the report as latte wrote it"),
    "report cut": (report(samples())[:-9], "is no report of latte 0.27 or later (JSONDecodeError"),
    "report of others": (
        ["{", '"requests_per_cycle": 1', "}"],
        "is no report of latte 0.27 or later (KeyError",
    ),
    "report without a log": (report([]), "is a report without samples; run latte without --drop-sampling-log"),
    "report that disagrees": (report(samples(), 30_000), "states 30,000 cycles in all, and the lines before it add up"),
    "the end alone": (summary(24_000), "has no window of latte; `latte run` prints a line for each second, and writes"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_lines_are_refused_with_a_remedy(case: str) -> None:
    lines, message = REFUSED[case]
    assert message in refusal(LATTE, *lines)


def test_the_log_and_the_report_of_a_run_have_the_same_figures() -> None:
    log, report_ = (read(LATTE, *text_of(name)).table for name in ("latte.txt", "latte.json.gz"))
    for one, other in zip(log.samples, report_.samples, strict=True):
        assert one.end == pytest.approx(other.end, abs=0.01)
        # A sample's own length is not quite the distance of two ends.
        for name, value in one.values.items():
            assert value == pytest.approx(other.values[name], rel=0.01, abs=0.00006)
