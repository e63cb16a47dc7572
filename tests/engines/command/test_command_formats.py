"""What commands print, as windows."""

import json
import re
import textwrap

import pytest
import yaml
from testkit.checkout import ROOT
from tests.engines.command.lines import START, read, taken

from cliffwatch.base.histogram import Histogram
from cliffwatch.engines.command.definition import CommandDefinition
from cliffwatch.engines.command.formats import NOT_A_LINE
from cliffwatch.engines.command.windows import CommandWindows
from cliffwatch.model.window import EngineWindow


def p99(window: EngineWindow) -> float | None:
    return window.latency["write"].percentiles_seconds([0.99])[0]


def test_lines_of_start_and_latency_count_where_they_ended() -> None:
    windows, line = read({"format": "latencies", "unit": "milliseconds"})
    for text in (f"{START + 1} 2.5", f"{START + 9.999},4", f"{START + 12}\t250"):
        line(text, START + 13)
    first, second = taken(windows), taken(windows)
    assert (first.counters["operations"], second.counters["operations"]) == (1, 2)
    assert p99(first) == pytest.approx(0.0025, rel=0.001)
    assert p99(second) == pytest.approx(0.25, rel=0.001)


def test_times_of_the_wall_clock_are_put_on_the_time_line_of_the_run() -> None:
    windows, line = read({"format": "latencies", "unit": "seconds"}, ahead=100.0)
    line(f"{START - 95} 0.5", START + 6)
    assert taken(windows).counters["operations"] == 1


@pytest.mark.parametrize("text", ["", "1", "now 5", f"{START} -5", f"{START} nan", f"{START} 1e99", "1 2 3"])
def test_a_line_that_is_no_latency_is_refused(text: str) -> None:
    _, line = read({"format": "latencies", "unit": "milliseconds"})
    with pytest.raises(ValueError, match=r".*"):
        line(text, START)


def test_interval_logs_of_hdr_histogram_are_merged() -> None:
    windows, line = read({"format": "hdr"})
    histogram = Histogram.from_values({5_000_000: 90, 80_000_000: 10})
    payload = histogram.encode()
    for text in (
        "#[Histogram log format version 1.3]",
        f"#[StartTime: {START:.3f} (seconds since epoch), Mon Sep 21 14:13:20 UTC 2026]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
        f"Tag=A,1.000,5.000,80.0,{payload}",
        f"{START + 5:.3f},5.000,80.0,{payload}",
        f"11.000,5.000,80.0,{payload}",
    ):
        line(text, START + 20)
    first, second = taken(windows), taken(windows)
    assert (first.counters["operations"], second.counters["operations"]) == (200, 100)
    assert p99(first) == pytest.approx(0.08, rel=0.001)


def test_an_interval_whose_length_holds_its_end_counts_where_it_was() -> None:
    """`start, start + 5` instead of `start, 5`, as some releases of a Go writer print it."""
    windows, line = read({"format": "hdr"})
    payload = Histogram.from_values({5_000_000: 100}).encode()
    line(f"#[StartTime: {START:.3f} (seconds since epoch)]", START)
    for start in (0, 5, 10, 15, 20, 25):
        line(f"Tag=raw,{start}.000,{start + 5}.000,5.0,{payload}", START + start + 5)
    assert [taken(windows).counters["operations"] for _ in range(3)] == [200, 200, 200]
    assert windows.take() is None


def test_the_unit_of_interval_logs_can_be_said() -> None:
    windows, line = read({"format": "hdr", "unit": "microseconds"})
    line(f"{START},1.0,5.0,{Histogram.from_values({5_000_000: 10}).encode()}", START + 2)
    assert p99(taken(windows)) == pytest.approx(5.0, rel=0.01)


def test_the_stream_of_k6_has_durations_and_failures() -> None:
    windows, line = read({"format": "k6"})

    def point(metric: str, value: float) -> str:
        data = {"time": "2026-09-21T16:13:24.123456789+02:00", "value": value, "tags": {"status": "200"}}
        return json.dumps({"type": "Point", "metric": metric, "data": data})

    line(json.dumps({"type": "Metric", "metric": "http_req_duration", "data": {"type": "trend"}}), START)
    for text in (point("http_req_duration", 12.5), point("http_reqs", 1), point("http_req_failed", 0)):
        line(text, START + 5)
    line(point("http_req_failed", 1), START + 5)
    line(point("dropped_iterations", 3), START + 5)
    window = taken(windows)
    assert window.counters == {"operations": 1, "errors": 1, "skipped": 3}
    assert p99(window) == pytest.approx(0.0125, rel=0.001)


@pytest.mark.parametrize(
    "text",
    [
        "5",
        "[]",
        "{",
        "[" * 100_000,
        '{"type": "Point", "metric": "http_req_duration"}',
        '{"type": "Point", "metric": "http_req_duration", "data": {"time": "soon", "value": 1}}',
        '{"type": "Point", "metric": "http_req_duration", "data": {"time": "2026-09-21T14:13:24Z", "value": "x"}}',
        '{"type": "Point", "metric": "http_req_duration", "data": {"time": "2026-09-21T14:13:24Z", "value": -1}}',
        '{"type": "Point", "metric": "http_req_duration", "data": {"time": "2026-09-21T14:13:24Z", "value": NaN}}',
    ],
)
def test_a_line_of_k6_that_is_none_is_refused(text: str) -> None:
    windows, line = read({"format": "k6"})
    with pytest.raises(NOT_A_LINE):
        line(text, START + 5)
    assert windows.take() is None


def test_progress_of_sysbench_has_a_rate_and_a_quantile_of_each_line() -> None:
    pattern = r"fsyncs: (?P<operations_per_second>[0-9.]+)/s latency \(ms,99%\): (?P<p99>[0-9.]+)"
    windows, line = read({"format": "progress", "pattern": pattern, "unit": "milliseconds"})
    line("Threads started!", START + 0.1)
    for second, (rate, p99_milliseconds) in enumerate([(30.0, 7.5), (50.0, 4.0), (45.0, 90.0)], 1):
        text = f"[ {second}s ] reads: 0 writes: 1 fsyncs: {rate:.2f}/s latency (ms,99%): {p99_milliseconds}"
        line(text, START + 4 * second)
    first, second_window = taken(windows), taken(windows)
    assert first.counters["operations"] == 4 * 30 + 4 * 50 + 2 * 45, (
        "of the third line the part before its window's end"
    )
    assert first.quantiles == {"write": {"p99": 0.0075}}, "of two lines in a window, the higher"
    assert second_window.quantiles == {"write": {"p99": 0.09}}
    assert first.latency == {}


def test_progress_with_a_decimal_comma() -> None:
    pattern = r"rate (?P<operations_per_second>[0-9.,]+) op/s p99 (?P<p99>\S+) ms"
    windows, line = read({"format": "progress", "pattern": pattern, "unit": "milliseconds"})
    line("t=1 rate 1000,5 op/s p99 2,35 ms", START + 10)
    line("t=2 rate 1,234,567 op/s p99 nan ms", START + 20)
    with pytest.raises(ValueError, match="no measurement"):
        line("t=3 rate 1000,5 op/s p99 -1 ms", START + 30)
    first, second = taken(windows), taken(windows)
    assert first.counters["operations"] == 10_005
    assert first.quantiles == {"write": {"p99": 0.00235}}
    assert (second.counters["operations"], second.quantiles) == (12_345_670, {})


def test_progress_of_db_bench_counts_since_the_line_before() -> None:
    windows, line = read({"format": "progress", "pattern": r"thread [0-9]+: \((?P<operations>[0-9]+),"})
    for thread in (0, 1):
        line(f"2026/11/27-23:37:04  ... thread {thread}: (18000,18000) ops and (17880.0,17880.0) ops/second", START + 1)
    window = taken(windows)
    assert window.counters["operations"] == 36_000
    assert (window.latency, window.quantiles) == ({}, {})


def test_totals_since_the_start_are_counted_by_their_increases() -> None:
    pattern = r"(?P<operations_total>[0-9]+) done, (?P<errors_total>[0-9]+) failed"
    windows, line = read({"format": "progress", "pattern": pattern})
    for second, (done, failed) in enumerate([(100, 0), (250, 2), (400, 2), (50, 1)], 1):
        line(f"{done} done, {failed} failed", START + second)
    assert taken(windows).counters == {"operations": 450, "errors": 3}, "of the last line all: it began again"


@pytest.mark.parametrize(
    ("counts", "growing"),
    [
        (range(100, 2500, 100), "operations"),
        ([100] * 50, ""),
        ([*range(100, 2500, 100), 2300], ""),
        ([100, 101, 100, 102, 103], ""),
        ([min(100 * number, 1000) + number % 2 for number in range(50)], ""),
    ],
)
def test_a_count_that_only_grows_is_a_total(counts: list[int], growing: str) -> None:
    windows, line = read({"format": "progress", "pattern": r"(?P<operations>[0-9]+) done"})
    for second, count in enumerate(counts, 1):
        line(f"{count} done", START + second / 10)
    assert windows.growing == growing


def test_progress_of_the_kafka_producer_s_test() -> None:
    pattern = r"(?P<operations>[0-9]+) records sent, .* ms avg latency, (?P<max>[0-9.]+) ms max latency"
    windows, line = read({"format": "progress", "pattern": pattern, "unit": "milliseconds"})
    line("5001 records sent, 1000.2 records/sec (0.98 MB/sec), 3.2 ms avg latency, 202.0 ms max latency.", START + 5)
    window = taken(windows)
    assert window.counters["operations"] == 5001
    assert window.quantiles == {"write": {"max": 0.202}}


def test_progress_of_openmessaging_benchmark_by_the_file_of_the_page() -> None:
    page = (ROOT / "docs" / "engines" / "command.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^(    version: 1\n    description: OpenMessaging.*?)\n\n", page, re.MULTILINE | re.DOTALL)
    definition = CommandDefinition.model_validate(yaml.safe_load(textwrap.dedent(shown)))
    windows, line = read(definition.output.model_dump(exclude_none=True))
    line(
        "12:01:10.041 [main] INFO WorkloadGenerator - Pub rate 20159.0 msg/s / 19.7 MB/s | Pub err  0.0 err/s | Cons "
        "rate 20149.9 msg/s / 19.7 MB/s | Backlog: 0.2 K | Pub Latency (ms) avg:  2.2 - 50%:  1.4 - 99%: 17.7 - 99.9%: "
        "38.4 - Max: 50.1 | Pub Delay Latency (us) avg: 89.4 - 50%: 80.0 - 99%: 310.0 - 99.9%: 900.0 - Max: 2100.0",
        START + 9,
    )
    window = taken(windows)
    assert window.quantiles == {"write": {"p50": 0.0014, "p99": 0.0177, "p999": 0.0384, "max": 0.0501}}
    assert window.counters["operations"] > 0


def test_late_lines_count_in_the_next_window_and_lines_before_the_load_in_none() -> None:
    windows, line = read({"format": "latencies", "unit": "seconds"})
    assert windows.take() is None
    line(f"{START + 1} 0.1", START + 12)
    line(f"{START - 5} 0.1", START + 12)
    assert taken(windows).counters["operations"] == 1
    assert windows.take_late() == 0


def test_a_window_without_a_line_is_not_measured() -> None:
    windows = CommandWindows("write", START, 10.0, 250.0)
    assert windows.take() is None
    windows.hear(START + 12)
    window = taken(windows, 4.5)
    assert (window.start, window.end) == (START + 10, START + 20)
    assert window.counters == {"operations": 0, "errors": 0}
    assert window.gauges == {"requested_operations_per_second": 250.0, "measured_seconds": 4.5}
