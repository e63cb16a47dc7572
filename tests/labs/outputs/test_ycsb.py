"""YCSB's status lines, its time series, and its totals."""

from pathlib import Path

import pytest
from tests.labs.outputs.printed import text_of
from tests.labs.outputs.reading import first, read, refusal, verdict

from cliffwatch.labs.outputs.names import OutputFormat

YCSB = OutputFormat.YCSB


def status(at: int, rate: float = 100.0, total: int | None = None, rest: str = "", hour: int = 10) -> str:
    operations = round(10 * at * rate) if total is None else total
    percentiles = f"90={900 + at % 5}, 99={1500 + at % 7}, 99.9=2000"
    measured = rest or f"[READ: Count=1000, Max=2500, Min=100, Avg={500 + at % 3}.5, {percentiles}]"
    time = f"2026-03-29 {hour + at // 360:02d}:{at // 6 % 60:02d}:{10 * (at % 6):02d}:500"
    return (
        f"{time} {10 * at} sec: {operations} operations; {rate:g} current ops/sec; est completion in 1 day {measured} "
    )


def steady(count: int = 60) -> list[str]:
    return [status(at) for at in range(1, count + 1)]


def test_a_steady_target_passes(tmp_path: Path) -> None:
    assert verdict(tmp_path / "y.txt", YCSB, steady())[0] == "pass"
    before = [line for line in text_of("ycsb.txt") if " sec: " not in line or int(line[24:].split(" sec:")[0]) < 30]
    assert verdict(tmp_path / "y.txt", YCSB, before[: before.index("[OVERALL], RunTime(ms), 57031")])[0] == "pass"


def test_a_line_has_the_latencies_of_its_operations_in_microseconds() -> None:
    values = first(read(YCSB, *steady())).values
    expected = {"read.mean": 501.5e-6, "read.p90": 901e-6, "read.p99": 1501e-6, "read.p999": 2e-3, "read.max": 2.5e-3}
    assert dict(values) == pytest.approx(expected | {"operations_per_second": 100})


def test_operations_that_failed_are_not_completed(tmp_path: Path) -> None:
    failed = "[READ: Count=990, Avg=500.0] [READ-FAILED: Count=10, Max=90, Min=5, Avg=20.0, 99=80]"
    lines = [*steady(29), status(30, rest=failed), *steady()[30:]]
    table = read(YCSB, *lines).table
    assert (table.completed, table.errors) == (59_990, 10)
    assert not [series.name for series in table.series if "failed" in series.name]
    assert verdict(tmp_path / "y.txt", YCSB, lines)[0] == "degraded"


def test_an_operation_of_two_steps_is_no_failure() -> None:
    rest = "[READ-MODIFY-WRITE: Count=5, Avg=9.5] [Intended-READ: Count=5, Avg=900.5] [READ-NOT_FOUND: Count=2, Avg=1]"
    table = read(YCSB, *(status(at, rest=rest) for at in range(1, 31))).table
    assert table.errors == 60
    assert table.samples[0].values["read-modify-write.mean"] == pytest.approx(9.5e-6)
    assert table.samples[0].values["intended-read.mean"] == pytest.approx(900.5e-6)


def test_an_operation_that_a_line_has_none_of_has_no_latency() -> None:
    rest = "[READ: Count=0, Max=0, Min=9223372036854775807, Avg=NaN, 99=0] [UPDATE: Count=1000, Max=9, Avg=5.5, 99=8]"
    table = read(YCSB, *steady(29), status(30, rest=rest)).table
    assert {name for name in table.samples[-1].values if "." in name} == {"update.max", "update.mean", "update.p99"}


@pytest.mark.parametrize(("failed", "windows", "errors"), [(0, 60, 0), (1, 61, 1)])
def test_a_last_line_of_a_short_time_is_left_out_unless_operations_failed(
    failed: int, windows: int, errors: int
) -> None:
    last = status(60, rest=f"[READ-FAILED: Count={failed}, Avg=9.0]").replace("0:500 ", "0:600 ")
    table = read(YCSB, *steady(), last).table
    assert (len(table.samples), table.errors) == (windows, errors)


def test_lines_that_are_absent_are_a_gap(tmp_path: Path) -> None:
    lines = [*steady()[:20], *steady()[23:]]
    samples = read(YCSB, *lines).table.samples
    assert [(each.start, each.end) for each in samples[19:21]] == [(190, 200), (230, 240)]
    assert verdict(tmp_path / "y.txt", YCSB, lines)[0] == "invalid"


@pytest.mark.parametrize("rest", ["[READ: Count=0, Max=0, Min=9223372036854775807, Avg=NaN, 90=0, 99=0]", " "])
def test_lines_without_an_operation_are_a_stall(tmp_path: Path, rest: str) -> None:
    none = [status(at, rate=0.0, total=20_000, rest=rest) for at in range(21, 24)]
    after = [status(at, total=20_000 + 1000 * (at - 23)) for at in range(24, 61)]
    name, words = verdict(tmp_path / "y.txt", YCSB, [*steady(20), *none, *after])
    assert name == "degraded"
    assert "Nothing was completed for 30 s" in words


def test_a_rate_of_zero_beside_frozen_latencies_is_no_pass(tmp_path: Path) -> None:
    lines = [status(at, rate=0.0, total=0) for at in range(1, 61)]
    assert verdict(tmp_path / "y.txt", YCSB, lines)[0] == "invalid"


def test_decimal_commas_are_read() -> None:
    lines = [line.replace(".5, 90", ",5, 90").replace("100 current", "100,25 current") for line in steady()]
    output = read(YCSB, *lines)
    assert first(output).values["read.mean"] == pytest.approx(501.5e-6)
    assert first(output).values["operations_per_second"] == 100.25


def test_a_summer_night_is_neither_a_gap_nor_a_second_run() -> None:
    for later, begin in ((1, 1), (-1, 2)):
        lines = [status(at, hour=begin + (later if at > 30 else 0)) for at in range(1, 61)]
        table = read(YCSB, *lines).table
        assert table.samples[-1].end == pytest.approx(600, abs=1)
        assert len(table.samples) == 60


def test_rates_that_differ_from_the_operations_are_refused() -> None:
    lines = [status(at, total=1100 * at) for at in range(1, 61)]
    assert "line 60: states 64,900 operations in all, and the lines before it add up to 59,000" in refusal(YCSB, *lines)


def test_totals_at_the_end_agree_with_the_lines() -> None:
    assert read(YCSB, *steady(), "[READ], Operations, 60000").operations == 60_000
    words = refusal(YCSB, *steady(), "[READ], Operations, 66000")
    assert words == "out.txt line 61: states 66,000 READ in all, and the lines before it add up to 60,000"


def test_a_time_series_has_means_and_gaps(tmp_path: Path) -> None:
    lines = [line for line in text_of("ycsb-timeseries.txt") if " sec: " not in line]
    output = read(YCSB, *lines)
    assert output.remark.startswith("A time series of YCSB has means and no rate")
    assert first(output).values["read.mean"] == pytest.approx(0.0072, rel=0.1)
    assert verdict(tmp_path / "y.txt", YCSB, lines)[0] == "invalid"
    steady_lines = [f"[READ], {1000 * at}, {5000 + at % 7}.25" for at in range(60)]
    assert verdict(tmp_path / "y.txt", YCSB, steady_lines)[0] == "pass"


REFUSED = {
    "cut": ([*steady(3), steady()[3][:60], *steady()[4:]], "line 4: is a status line that cannot be read: '2026-03-29"),
    "no date": ([steady()[0].replace("03-29", "13-29")], "line 1: has no time that can be read: '2026-13-29"),
    "two runs": ([*steady(9), *steady(9)], "line 10: is at 10 s, after one at 90 s in line 9; give the output of one"),
    "no status": (
        ["[OVERALL], RunTime(ms), 57031", "[READ], Operations, 11321", "[READ], 0, 117", "[READ], 1, 23"],
        "has no window of ycsb; `ycsb run … -s -p status.interval=1` prints status lines to standard error",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_lines_are_refused_with_a_remedy(case: str) -> None:
    lines, message = REFUSED[case]
    assert message in refusal(YCSB, *lines)
