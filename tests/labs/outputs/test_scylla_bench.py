"""Lines of scylla-bench: figures since the line before, with durations as Go prints them."""

from pathlib import Path

import pytest
from tests.labs.outputs.printed import text_of
from tests.labs.outputs.reading import first, read, refusal, verdict

from cliffwatch.labs.outputs.go_durations import go_seconds
from cliffwatch.labs.outputs.names import OutputFormat

SCYLLA = OutputFormat.SCYLLA_BENCH
HEAD = "    time   ops/s  rows/s errors max    99.9th 99th   95th   90th   median mean   "
BEGIN = ["Configuration", "Mode:\t\t\t write", "Hdr memory consumption:\t 64426256 bytes", "", HEAD]
IDLE = "33µs   0s     0s     0s     0s     0s     0s     "


def time(second: int) -> str:
    hours, minutes = second // 3600, second // 60
    return (f"{hours}h" if hours else "") + (f"{minutes % 60}m" if minutes else "") + f"{second % 60}s"


def line(second: int, operations: int = 200, errors: int = 0, milliseconds: float = 2.0) -> str:
    values = [milliseconds * factor * (1 + second % 5 / 100) for factor in (20, 18, 10, 4, 2, 1, 1.2)]
    latencies = " ".join(f"{f'{value:.1f}ms':<6}" for value in values) if operations else IDLE
    return f"{time(second):>8} {operations:7d} {operations:7d} {errors:6d} {latencies} "


def steady(begin: int = 1, end: int = 121) -> list[str]:
    return [line(second) for second in range(begin, end)]


def end(operations: int, errors: int = 0) -> list[str]:
    failed = [f"Total errors:\t {errors}"] if errors else []
    return ["Results", "Time (avg):\t 2m0s", f"Total ops:\t {operations}", f"Total rows:\t {operations}", *failed]


def test_windows_have_the_figures_of_their_lines() -> None:
    output = read(SCYLLA, *BEGIN, *steady(), *end(24_000))
    values = first(output).values
    expected = {"mean": 2.4, "p50": 2, "p90": 4.0, "p95": 8.1, "p99": 20.2, "p999": 36.4, "max": 40.4}
    assert dict(values) == pytest.approx(
        {name: value / 1000 for name, value in expected.items()} | {"operations_per_second": 200}, rel=0.02
    )
    assert output.operations == output.table.completed == 24_000
    assert [(each.start, each.end) for each in output.table.samples[:2]] == [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0s", 0),
        ("688µs", 688e-6),
        ("688μs", 688e-6),
        ("33us", 33e-6),
        ("5ns", 5e-9),
        ("1h2m3.5s", 3723.5),
        ("-1s", -1),
    ],
)
def test_durations_are_those_of_go(text: str, seconds: float) -> None:
    assert go_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "s", "1.5.2s", "9" * 20 + "s", "1m", "5 ms"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        go_seconds(text)


def test_a_steady_target_passes_and_a_slower_one_does_not(tmp_path: Path) -> None:
    assert verdict(tmp_path / "s.txt", SCYLLA, [*BEGIN, *steady(), *end(24_000)])[0] == "pass"
    slower = [line(second, milliseconds=8) for second in range(121, 241)]
    assert verdict(tmp_path / "s.txt", SCYLLA, [*BEGIN, *steady(), *slower])[0] == "degraded"


def test_seconds_without_operations_are_a_stall(tmp_path: Path) -> None:
    held = [line(second, 0) for second in range(61, 75)]
    lines = [*BEGIN, *steady(1, 61), *held, *steady(75, 135)]
    sample = read(SCYLLA, *lines).table.samples[62]
    assert dict(sample.values) == {"operations_per_second": 0}
    assert verdict(tmp_path / "s.txt", SCYLLA, lines)[0] == "degraded"


def test_lines_that_are_absent_are_a_gap(tmp_path: Path) -> None:
    lines = [*BEGIN, *steady(1, 61), *steady(64, 121)]
    samples = read(SCYLLA, *lines).table.samples
    assert [(each.start, each.end) for each in samples[59:61]] == [(59, 60), (63, 64)]
    assert verdict(tmp_path / "s.txt", SCYLLA, lines)[0] == "invalid"


def test_the_end_of_a_file_has_times_of_its_own() -> None:
    samples = read(SCYLLA, *BEGIN, *steady(61)).table.samples
    assert (samples[0].start, samples[0].end, samples[0].values["operations_per_second"]) == (0, 1, 200)


def test_errors_are_counted_and_agree_with_the_total(tmp_path: Path) -> None:
    lines = [*BEGIN, *steady(1, 120), line(120, 199, 1), *end(23_999, 1)]
    assert read(SCYLLA, *lines).table.errors == 1
    assert verdict(tmp_path / "s.txt", SCYLLA, lines)[0] == "degraded"
    words = refusal(SCYLLA, *lines[:-1], "Total errors:\t 9")
    assert words == "out.txt line 130: states 9 errors in all, and the lines before it add up to 1"


def test_operations_after_the_last_line_are_in_the_total_alone() -> None:
    assert read(SCYLLA, *BEGIN, *steady(), *end(24_180)).operations == 24_000
    words = refusal(SCYLLA, *BEGIN, *steady(), *end(27_000))
    assert "states 27,000 operations in all, and the lines before it add up to 24,000" in words


def test_a_second_line_of_the_last_time_is_added_to_the_first() -> None:
    output = read(SCYLLA, *BEGIN, *steady(), line(120, 4, 2, 50), *end(24_004, 2))
    assert (output.operations, output.table.errors, len(output.table.samples)) == (24_004, 2, 120)
    assert output.table.samples[-1].values["max"] == 1


def test_the_log_of_errors_goes_on_in_a_line() -> None:
    logged = f"{line(61)}2026/09/21 14:00:00 Operation timed out - received only 0 responses."
    lines = [*BEGIN, *steady(1, 61), logged, "2026/09/21 14:00:00 retry: attempt №0", "", *steady(62)]
    assert read(SCYLLA, *lines, *end(24_000)).operations == 24_000


def test_errors_of_the_recording_are_counted_beside_their_log(tmp_path: Path) -> None:
    lines = text_of("scylla-bench-errors.txt")
    table = read(SCYLLA, *lines).table
    assert (table.errors, table.completed) == (24, 6572)
    assert dict(table.samples[14].values) == {"operations_per_second": 0}
    assert verdict(tmp_path / "s.txt", SCYLLA, lines)[0] == "degraded"


def test_lines_of_the_first_release_are_read() -> None:
    head = "\ntime             operations/s   rows/s   errors  max   99.9th   99th   95th   90th   median   mean   "
    lines = [
        f"{second}.00041{second % 10}s  200  200  0  41.2ms  40.1ms  20ms  8ms  4ms  2ms  2.4{second % 10}ms  "
        for second in range(1, 61)
    ]
    output = read(SCYLLA, *head.split("\n"), *lines)
    assert output.operations == 12_000
    assert first(output).values["p99"] == 0.02


REFUSED = {
    "cut": (
        [*BEGIN, *steady(), "    121s     200  "],
        "line 126: is a line of a second that cannot be read: '    121s",
    ),
    "no duration": ([*BEGIN, line(1).replace("20.2ms", "20.2  ")], "line 6: is a line of a second that cannot be"),
    "two runs": (
        [*BEGIN, *steady(), *BEGIN, *steady()],
        "line 131: is at 1 s, after one at 120 s in line 125; give the",
    ),
    "without latencies": (
        ["    time   ops/s  rows/s errors", "      1s     200     200      0"],
        "line 1: is a header with no latencies in place of max 99.9th 99th 95th 90th median mean; run scylla-bench",
    ),
    "the end alone": (end(24_000), "has no window of scylla-bench; `scylla-bench` prints a line for each second to"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_lines_are_refused_with_a_remedy(case: str) -> None:
    lines, message = REFUSED[case]
    assert message in refusal(SCYLLA, *lines)
