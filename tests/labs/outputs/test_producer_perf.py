"""Lines of kafka-producer-perf-test: of old releases, while brokers are away, and with the total at the end."""

import random
from pathlib import Path

import pytest
from tests.labs.outputs.reading import analyze, read, refusal

from cliffwatch.labs.outputs.names import OutputFormat

PERF = OutputFormat.PRODUCER_PERF
EXPIRED = "org.apache.kafka.common.errors.TimeoutException: Expiring {0} record(s) for soak-7:120021 ms has passed"


def line(records: int = 2500, seconds: float = 5.0, mean: float = 4.0, longest: float = 40.0, unit: str = " ms") -> str:
    rate = f"{records / seconds:.1f} records/sec ({records / seconds / 1049:.2f} MB/sec)"
    return f"{records} records sent, {rate}, {mean:.1f} ms avg latency, {longest:.1f}{unit} max latency."


def total(records: int) -> str:
    rest = (
        "499.95 records/sec (0.10 MB/sec), 4.57 ms avg latency, 40.00 ms max latency, 4 ms 50th, 9 ms 95th, 9 ms 99th"
    )
    return f"{records} records sent, {rest}, 9 ms 99.9th."


def verdict(path: Path, lines: list[str]) -> tuple[str, str]:
    path.write_text("".join(f"{each}\n" for each in lines))
    result = analyze(path, "producer-perf")
    return result.stdout.splitlines()[0].removeprefix("verdict: "), result.stdout


def healthy(count: int) -> list[str]:
    noise = random.Random(7)
    means = [4.0 * noise.lognormvariate(0, 0.05) for _ in range(count)]
    return [line(mean=mean, longest=10 * mean) for mean in means]


@pytest.mark.parametrize("unit", ["", " ms"])
def test_lines_without_a_unit_behind_the_maximum_are_those_of_kafka_up_to_2(unit: str) -> None:
    samples = read(PERF, line(unit=unit), line(unit=unit)).table.samples
    assert [(sample.start, sample.end) for sample in samples] == [(0, 5), (5, 10)]
    assert samples[0].values["max"] == pytest.approx(0.04)


def test_a_line_whose_rate_rounds_to_nothing_lasts_as_long_as_its_longest_latency(tmp_path: Path) -> None:
    blocked = line(1, 120.0, 120_031.0, 120_031.0)
    assert "0.0 records/sec" in blocked
    output = read(PERF, line(), blocked, line())
    assert [(sample.start, sample.end) for sample in output.table.samples] == [
        (0, 5),
        (5, pytest.approx(125.031)),
        (pytest.approx(125.031), pytest.approx(130.031)),
    ]
    assert output.remark.startswith("Line 2 has a rate of 0")
    name, words = verdict(tmp_path / "perf.txt", [*healthy(200), blocked, *healthy(200)])
    assert name == "degraded"
    assert "An operation took at least 120 s" in words


def test_a_line_without_records_is_as_long_as_the_others_and_completed_nothing() -> None:
    nothing = "0 records sent, NaN records/sec (NaN MB/sec), NaN ms avg latency, 0.0 ms max latency."
    samples = read(PERF, line(), nothing, line()).table.samples
    assert [(sample.start, sample.end) for sample in samples] == [(0, 5), (5, 10), (10, 15)]
    assert dict(samples[1].values) == {"operations_per_second": 0.0}


@pytest.mark.parametrize(
    ("exceptions", "failed"),
    [
        ([EXPIRED.format(120)] * 120, 120),
        ([EXPIRED.format(120)] * 240, 240),
        ([EXPIRED.format(120)] * 9, 1080),
        ([EXPIRED.format(1), EXPIRED.format(2), EXPIRED.format(2)], 3),
        (["org.apache.kafka.common.errors.NotLeaderOrFollowerException: For requests intended only for the leader"], 1),
        (["[2026-11-27 09:00:00] WARN Got error produce response, retrying", "\tat java.base/Thread.run"], 0),
    ],
)
@pytest.mark.parametrize("is_last", [False, True])
def test_exceptions_are_records_that_failed(exceptions: list[str], failed: int, is_last: bool) -> None:
    lines = [line(), line(), *exceptions] if is_last else [line(), *exceptions, line()]
    assert read(PERF, *lines).table.errors == failed


def test_records_that_expired_are_no_pass(tmp_path: Path) -> None:
    name, words = verdict(tmp_path / "perf.txt", [*healthy(100), *[EXPIRED.format(50)] * 50, *healthy(100)])
    assert name == "degraded"
    assert "50 operations failed." in words


def test_a_total_may_have_what_was_sent_after_the_last_line() -> None:
    for more in (0, 400, 4000):
        assert read(PERF, *[line()] * 100, total(250_000 + more)).operations == 250_000


@pytest.mark.parametrize("records", [200_000, 300_000])
def test_a_total_that_differs_from_the_lines_is_refused(records: int) -> None:
    words = refusal(PERF, *[line()] * 100, total(records))
    assert words == f"out.txt line 101: states {records:,} records in all, and the lines before it add up to 250,000"


def test_two_runs_in_one_file_are_refused() -> None:
    run = [line(), line(), total(5000)]
    assert "line 4: is after line 3, the end of a run; give the output of one run" in refusal(PERF, *run, *run)
