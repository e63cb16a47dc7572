"""cassandra-stress: interval lines as in its documentation, known by their header, and the totals of its results."""

from pathlib import Path

import pytest
from tests.labs.outputs.reading import first, read, refusal, verdict

from cliffwatch.labs.outputs.names import OutputFormat

STRESS = OutputFormat.CASSANDRA_STRESS
HEAD = (
    "type       total ops,    op/s,    pk/s,   row/s,    mean,     med,     .95,     .99,    .999,     max,   time,"
    "   stderr, errors,  gc: #,  max ms,  sum ms,  sdv ms,      mb"
)
#: Up to release 2.1.
OLD_HEAD = HEAD.replace("type       total ops,", "total ops , adj row/s,").replace(" errors,", "")


def line(
    at: int, rate: int = 1000, kind: str = "total", total: int | None = None, errors: int = 0, scale: float = 1.0
) -> str:
    latencies = ", ".join(f"{scale * (base + at % 3 / 10):7.1f}" for base in (1.8, 1.2, 4.9, 11.0, 17.0, 21.7))
    operations = rate * at if total is None else total
    return (
        f"{kind},{operations:14d}, {rate:7d}, {rate:7d}, {rate:7d}, {latencies}, {at:6.1f},  0.00705, {errors:6d},"
        "      1,      49,      49,       0,     612"
    )


def steady(count: int = 60) -> list[str]:
    return ["Running WRITE with 4 threads 60 seconds", HEAD, *(line(at) for at in range(1, count + 1))]


def test_a_steady_target_passes_and_a_slower_one_does_not(tmp_path: Path) -> None:
    assert verdict(tmp_path / "c.txt", STRESS, steady())[0] == "pass"
    slower = [*steady(120), *(line(at, scale=4) for at in range(121, 241))]
    assert verdict(tmp_path / "c.txt", STRESS, slower)[0] == "degraded"


def test_columns_are_those_of_the_header_in_milliseconds() -> None:
    values = first(read(STRESS, *steady())).values
    expected = {"mean": 1.9e-3, "p50": 1.3e-3, "p95": 5e-3, "p99": 11.1e-3, "p999": 17.1e-3, "max": 21.8e-3}
    assert dict(values) == pytest.approx(expected | {"operations_per_second": 1000})


def test_lines_without_a_type_are_those_of_older_releases() -> None:
    old = [
        each.removeprefix("total,").replace(", ", ",  1000, ", 1).replace("      0,      1", "      1")
        for each in steady()
    ]
    lines = [OLD_HEAD, *old[2:]]
    assert dict(first(read(STRESS, *lines)).values) == pytest.approx(dict(first(read(STRESS, *steady())).values))


def test_kinds_of_a_mix_have_latencies_of_their_own() -> None:
    lines = [HEAD]
    for at in range(1, 31):
        lines += [line(at, 400, "READ", scale=2), line(at, 600, "WRITE"), line(at)]
    output = read(STRESS, *lines)
    values = first(output).values
    assert (values["read.p99"], values["write.p99"], values["p99"]) == pytest.approx((0.0222, 0.0111, 0.0111))
    assert values["operations_per_second"] == 1000
    assert len(output.table.samples) == 30


def test_lines_that_are_absent_are_a_gap(tmp_path: Path) -> None:
    lines = [*steady()[:22], *steady()[25:]]
    samples = read(STRESS, *lines).table.samples
    assert [(each.start, each.end) for each in samples[19:21]] == [(19, 20), (23, 24)]
    assert verdict(tmp_path / "c.txt", STRESS, lines)[0] == "invalid"


@pytest.mark.parametrize("scale", [0.0, 1.0, float("nan")])
def test_a_rate_of_zero_is_a_stall_whatever_its_latencies(tmp_path: Path, scale: float) -> None:
    held = [line(at, 0, total=30_000, scale=scale) for at in range(31, 43)]
    after = [line(at, total=30_000 + 1000 * (at - 42)) for at in range(43, 73)]
    name, words = verdict(tmp_path / "c.txt", STRESS, [*steady(30), *held, *after])
    assert name == "degraded"
    assert "Nothing was completed for 12 s" in words


def test_lines_that_are_absent_while_nothing_was_completed_are_a_gap(tmp_path: Path) -> None:
    after = [line(at, total=30_000 + 1000 * (at - 42)) for at in range(43, 73)]
    assert verdict(tmp_path / "c.txt", STRESS, [*steady(30), *after])[0] == "invalid"


def test_latencies_of_a_kind_are_those_of_its_own_line() -> None:
    lines = [HEAD, line(1, 400, "READ", scale=2), *(line(at) for at in range(1, 31))]
    samples = read(STRESS, *lines).table.samples
    assert "read.p99" in samples[0].values
    assert "read.p99" not in samples[1].values


def test_errors_are_those_of_the_interval(tmp_path: Path) -> None:
    lines = [*steady(59), line(60, errors=3), "", "Results:", "Total errors              :          3 [WRITE: 3]"]
    assert read(STRESS, *lines).table.errors == 3
    assert verdict(tmp_path / "c.txt", STRESS, lines)[0] == "degraded"


def results(partitions: str = "60,000", errors: int = 0) -> list[str]:
    return [
        "",
        "Results:",
        "Op rate                   :    1,000 op/s  [WRITE: 1,000 op/s]",
        f"Total partitions          : {partitions:>10} [WRITE: {partitions}]",
        f"Total errors              : {errors:>10} [WRITE: {errors}]",
        "Total operation time      : 00:01:00",
    ]


def test_results_agree_with_the_lines() -> None:
    for partitions in ("60,000", "61500", "59,900"):
        assert read(STRESS, *steady(), *results(partitions)).operations == 60_000
    assert "line 66: states 80,000 partitions in all" in refusal(STRESS, *steady(), *results("80000"))
    assert "line 67: states 50 errors in all, and the lines before it add up to 0" in refusal(
        STRESS, *steady(), *results(errors=50)
    )


def test_rates_that_differ_from_the_operations_are_refused() -> None:
    lines = [HEAD, *(line(at, total=1100 * at) for at in range(1, 61))]
    assert "line 61: states 64,900 operations in all" in refusal(STRESS, *lines)


REFUSED = {
    "cut": ([*steady(30), "total,  31000,   1000,"], "line 33: 'total,  31000,   1000,' does not have the 19 fields"),
    "text": ([*steady(9), line(10).replace("1000", "ten", 1)], "line 12: "),
    "two runs": (
        steady() * 2,
        "line 65: is at 1 s, after one at 60 s in line 62; give the output of one run at a time",
    ),
    "results alone": (results(), "has no window of cassandra-stress; `cassandra-stress … -log interval=1` prints"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_lines_are_refused_with_a_remedy(case: str) -> None:
    lines, message = REFUSED[case]
    assert message in refusal(STRESS, *lines)
