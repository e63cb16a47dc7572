"""go-ycsb: lines whose figures are since the start, and a line for each operation."""

from pathlib import Path

import pytest
from tests.labs.outputs.printed import text_of
from tests.labs.outputs.reading import read, refusal, verdict

from cliffwatch.labs.outputs.names import OutputFormat

GO_YCSB = OutputFormat.GO_YCSB
HEAD = "operation,timestamp_us,latency_us"


def line(name: str, takes: float, count: int, mean: int, longest: int = 9000) -> str:
    rest = "50th(us): 8, 90th(us): 8, 95th(us): 8, 99th(us): 8, 99.9th(us): 8, 99.99th(us): 8"
    return (
        f"{name:<6} - Takes(s): {takes:.1f}, Count: {count}, OPS: {count / takes:.1f}, Avg(us): {mean}, Min(us): 1,"
        f" Max(us): {longest}, {rest}"
    )


def printed(means: list[float], counts: list[int] | None = None, longest: int = 9000) -> list[str]:
    """Lines of intervals of 10 s with these means, in microseconds, and counts."""
    lines, count, total = [], 0, 0.0
    for number, (mean, each) in enumerate(zip(means, counts or [1000] * len(means), strict=True), 1):
        count, total = count + each, total + mean * each
        lines += [line(name, 10 * number, count, int(total / count), longest) for name in ("READ", "TOTAL")]
    return lines


def steady(count: int = 60) -> list[float]:
    return [5000.0 + 10 * (number % 7) for number in range(count)]


def test_means_and_rates_are_those_of_the_interval() -> None:
    samples = read(GO_YCSB, *printed([5000, 5000, 9000, 5000], [1000, 2000, 500, 0])).table.samples
    assert [sample.values["operations_per_second"] for sample in samples] == [100, 200, 50, 0]
    means = [sample.values.get("read.mean") for sample in samples]
    assert means[:3] == pytest.approx([0.005, 0.005, 0.009], rel=0.01)
    assert means[3] is None


def test_no_percentile_since_the_start_is_shown() -> None:
    output = read(GO_YCSB, *text_of("go-ycsb.txt.gz"))
    assert {series.name for series in output.table.series} == {"read.mean", "update.mean", "operations_per_second"}
    assert "Percentiles of go-ycsb are since the start and are left out" in output.remark


def test_a_steady_target_passes_and_a_slower_one_does_not(tmp_path: Path) -> None:
    assert verdict(tmp_path / "g.txt", GO_YCSB, printed(steady()))[0] == "pass"
    slower = [*steady(30), *(4 * mean for mean in steady(30))]
    assert verdict(tmp_path / "g.txt", GO_YCSB, printed(slower))[0] == "degraded"


def test_counts_that_stay_are_a_stall_though_the_means_stay_too(tmp_path: Path) -> None:
    counts = [1000] * 30 + [0] * 3 + [1000] * 27
    name, words = verdict(tmp_path / "g.txt", GO_YCSB, printed(steady(), counts))
    assert name == "degraded"
    assert "Nothing was completed for 30 s" in words


def test_the_longest_latency_is_in_the_verdict(tmp_path: Path) -> None:
    lines = [*printed(steady(), longest=9000)[:60], *printed(steady(), longest=12_000_000)[60:]]
    name, words = verdict(tmp_path / "g.txt", GO_YCSB, lines)
    assert name == "degraded"
    assert "An operation took 12 s, 5m10s into the load" in words


def test_means_that_whole_microseconds_do_not_show_are_not_measured(tmp_path: Path) -> None:
    fast = [100.0 + number % 3 for number in range(300)]
    lines = printed(fast)
    assert "The means of 295 intervals are not known to 5 %; `-p measurementtype=csv`" in read(GO_YCSB, *lines).remark
    assert verdict(tmp_path / "g.txt", GO_YCSB, lines)[0] == "invalid"


def test_lines_that_are_absent_are_a_gap(tmp_path: Path) -> None:
    lines = printed(steady())
    samples = read(GO_YCSB, *lines[:40], *lines[46:]).table.samples
    assert [(each.start, each.end) for each in samples[19:21]] == [(190, 200), (230, 240)]
    assert samples[20].values["operations_per_second"] == 100
    assert verdict(tmp_path / "g.txt", GO_YCSB, [*lines[:40], *lines[46:]])[0] == "invalid"


def test_figures_before_the_first_line_of_a_part_are_of_no_interval() -> None:
    samples = read(GO_YCSB, *printed([9000, 9000, *steady(10)])[4:]).table.samples
    assert len(samples) == 9
    assert samples[0].values["read.mean"] == pytest.approx(0.005, rel=0.02)


def test_an_interval_that_is_printed_twice_at_the_end_is_read_once() -> None:
    lines = printed(steady())
    assert len(read(GO_YCSB, *lines, *lines[-2:]).table.samples) == 60


def test_errors_are_failed_operations(tmp_path: Path) -> None:
    failed = [line("READ_ERROR", 10 * number, number // 30, 50) for number in range(1, 61)]
    lines = [each for number in range(60) for each in (*printed(steady())[2 * number : 2 * number + 2], failed[number])]
    table = read(GO_YCSB, *lines).table
    assert (table.errors, table.completed) == (2, 60_000)
    assert verdict(tmp_path / "g.txt", GO_YCSB, lines)[0] == "degraded"


def operations(count: int = 600, total: int | None = None) -> list[str]:
    each = [f"{1_790_000_000_000_000 + 100_000 * number},{5000 + number % 7}" for number in range(count)]
    return [HEAD, *(f"READ,{one}" for one in each), *(f"TOTAL,{one}" for one in each[:total])]


def test_a_line_for_each_operation_gives_exact_percentiles(tmp_path: Path) -> None:
    output = read(GO_YCSB, *operations())
    assert output.operations == 600
    assert output.table.samples[5].values["read.p99"] == pytest.approx(0.005006, abs=1e-6)
    assert verdict(tmp_path / "g.csv", GO_YCSB, operations())[0] == "pass"
    failed = [*operations(), "READ_ERROR,1790000030000000,5"]
    assert read(GO_YCSB, *failed).table.errors == 1


REFUSED = {
    "total": (
        [*printed(steady()), line("READ", 610, 61_000, 5000), line("TOTAL", 610, 70_000, 5000)],
        "line 122: states 70,000 operations in all, and the lines before it add up to 61,000",
    ),
    "operations": (operations(total=500), "line 1101: states 500 operations in all, and the lines before it add up"),
    "two runs": (printed(steady()) * 2, "line 121: counts 1,000 of READ, after 60,000 before; give the output of one"),
    "cut": ([*printed(steady(3)), "READ   - Takes(s): 40.0, Cou"], "line 7: is a line of an interval that cannot be"),
    "NaN": ([*operations(9), "READ,NaN,5"], "line 20: 'READ,NaN,5' is not `operation,timestamp_us,latency_us`"),
    "the end alone": (printed(steady(1)), "has no window of go-ycsb; `go-ycsb run … -p measurement.interval=1` prints"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_lines_are_refused_with_a_remedy(case: str) -> None:
    lines, message = REFUSED[case]
    assert message in refusal(GO_YCSB, *lines)


def test_operations_of_a_lost_line_are_counted_in_the_next_interval() -> None:
    each = {"READ": 1000, "TOTAL": 2000, "UPDATE": 1000}
    lines = [line(name, 10 * at, count * at, 5000) for at in range(1, 11) for name, count in each.items()]
    assert lines.pop(11).startswith("UPDATE")
    samples = read(GO_YCSB, *lines).table.samples
    assert [sample.values.get("operations_per_second") for sample in samples[2:6]] == [200, 100, 300, 200]
