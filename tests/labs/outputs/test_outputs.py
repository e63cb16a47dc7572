"""What load generators printed and logged, each from a real run: a target that stood still for some 15 s of 70."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.labs.outputs.printed import FILES, SLOWEST, STALLED, hlog, text_of
from tests.labs.outputs.reading import analyze, first, read, refusal
from typer.testing import CliRunner, Result

from cliffwatch.base.errors import Problem
from cliffwatch.cli.main import app
from cliffwatch.labs.outputs.formats import read_output
from cliffwatch.labs.outputs.names import LatencyUnit, OutputFormat


def document(result: Result) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(result.stdout)
    return body


@pytest.mark.parametrize("mode", ["offline", "online"])
@pytest.mark.parametrize("name", STALLED)
def test_a_target_that_stood_still_is_a_stall_in_what_was_printed(name: str, mode: str) -> None:
    result = analyze(FILES / name, STALLED[name], "--format", "json", "--mode", mode)
    assert result.exit_code == 1
    body = document(result)
    assert body["verdict"] == "degraded"
    (stall,) = [finding for finding in body["findings"] if finding["kind"] == "stall"]
    assert stall["onset_seconds"] == pytest.approx(41, abs=1)
    assert stall["until_seconds"] == pytest.approx(55, abs=1)
    assert "windows of 1 s" in body["read"]


@pytest.mark.parametrize("name", SLOWEST)
def test_the_slowest_operation_is_in_the_verdict_where_no_window_shows_the_stall(name: str) -> None:
    format_, seconds, at = SLOWEST[name]
    result = analyze(FILES / name, format_)
    assert result.exit_code == 1
    assert result.stdout.startswith("verdict: degraded")
    (reason,) = [line for line in result.stdout.splitlines() if line.startswith("An operation took")]
    words = reason.replace("1m59.4s", "119 s").replace("3m50s", "230 s").replace("at least ", "").split()
    assert float(words[3]) == pytest.approx(seconds, abs=0.5)
    assert float(words[5]) == pytest.approx(at, abs=1)


@pytest.mark.parametrize(
    ("name", "operations", "written"),
    [
        ("pgbench-log.txt.gz", 6945, "number of transactions actually processed: 6945"),
        ("fio_each_lat.txt.gz", 4200, "60 a second for 70 s"),
        ("fio-plus.json.gz", 14000, "200 a second for 70 s"),
    ],
)
def test_every_operation_is_read(name: str, operations: int, written: str) -> None:
    format_ = (STALLED | {key: value[0] for key, value in SLOWEST.items()})[name]
    output = read_output(text_of(name), name, format_)
    assert output.operations == operations, written
    rate = sum(sample.values["operations_per_second"] * (sample.end - sample.start) for sample in output.table.samples)
    assert rate == pytest.approx(operations, rel=0.02)


def test_the_means_of_progress_lines_are_those_of_the_log_of_the_same_run() -> None:
    """pgbench says what its own log says: a check of both readers by each other, on another run of 30 s."""
    progress = read_output(text_of("pgbench-both-progress.txt"), "a", OutputFormat.PGBENCH).table
    log = read_output(text_of("pgbench-both-log.txt.gz"), "b", OutputFormat.PGBENCH).table
    means = [[sample.values["mean"] for sample in table.samples[:28]] for table in (progress, log)]
    assert means[0] == pytest.approx(means[1], rel=0.2)


def test_progress_of_older_and_newer_pgbench_is_read() -> None:
    output = read(
        OutputFormat.PGBENCH,
        "progress: 5.0 s, 100.0 tps, lat 2.000 ms stddev 1.000",
        "progress: 10.0 s, 50.0 tps, lat 4.000 ms stddev 1.000, 3 failed, lag 0.1 ms, 0 skipped, 2 retried, 2 retries",
        "progress: 15.0 s, 0.0 tps, lat -nan ms stddev -nan, 0 failed",
    )
    samples = output.table.samples
    assert [(sample.start, sample.end) for sample in samples] == [(0, 5), (5, 10), (10, 15)]
    assert [dict(sample.values) for sample in samples] == [
        {"operations_per_second": 100.0, "mean": 0.002},
        {"operations_per_second": 50.0, "mean": 0.004},
        {"operations_per_second": 0.0},
    ]
    assert (output.table.errors, output.table.skipped) == (3, 0)


def test_progress_by_the_wall_clock_begins_at_zero() -> None:
    lines = [f"progress: {1_700_000_000 + at}.5 s, 9.0 tps, lat 2.000 ms stddev 1.0, 0 failed" for at in (10, 20, 30)]
    table = read(OutputFormat.PGBENCH, *lines).table
    assert [(sample.start, sample.end) for sample in table.samples] == [(0, 10), (10, 20), (20, 30)]


def test_sums_of_pgbench_have_a_mean_and_the_longest() -> None:
    table = read(
        OutputFormat.PGBENCH,
        "1700000000 10 20000 41000000 1000 9000",
        "1700000010 0 0 0 0 0",
        "1700000020 5 5000 1 1 2000",
    ).table
    assert [dict(sample.values) for sample in table.samples] == [
        {"operations_per_second": 1.0, "mean": 0.002, "max": 0.009},
        {"operations_per_second": 0.0},
        {"operations_per_second": 0.5, "mean": 0.001, "max": 0.002},
    ]


def test_a_transaction_that_failed_is_an_error_and_one_that_was_skipped_is_counted_apart() -> None:
    table = read(
        OutputFormat.PGBENCH,
        "0 1 1500 0 1700000000 500000",
        "0 2 failed 0 1700000001 600000",
        "1 1 skipped 0 1700000001 700000",
        "0 3 2500 0 1700000003 0 17",
    ).table
    assert (table.errors, table.skipped, table.completed) == (1, 1, 2)


def test_the_age_of_an_operation_pending_over_empty_windows_is_known_afterwards() -> None:
    lines = [*(f"{at}, 1000000, 1, 4096, 0" for at in range(0, 5000, 100)), "9600, 5000000000, 1, 4096, 0"]
    samples = read(OutputFormat.FIO_LOG, *lines).table.samples
    ages = [sample.oldest_seconds for sample in samples]
    assert ages[:5] == [None] * 5
    assert ages[5:9] == pytest.approx([1.4, 2.4, 3.4, 4.4], abs=0.01)
    assert samples[9].values["write.max"] == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("lines", "numbers", "errors"),
    [
        (
            ["[ 10s ] thds: 4 tps: 12.5 qps: 250.0 (r/w/o: 1/2/3) lat (ms,99%): 20.0 err/s: 0.50 reconn/s: 0.00"],
            {"operations_per_second": 12.5, "p99": 0.02},
            5,
        ),
        (["[ 10s ] thds: 1 eps: 1400.0 lat (ms,95%): 0.75"], {"operations_per_second": 1400.0, "p95": 0.00075}, 0),
        (
            ["Block size 4KiB", "[ 10s ] reads: 0.00 MiB/s writes: 2.00 MiB/s fsyncs: 8.00/s latency (ms,99.9%): 3.5"],
            {"operations_per_second": 520.0, "p999": 0.0035},
            0,
        ),
        (["[ 10s ] thds: 1 eps: 0.0 lat (ms,95%): 0.00"], {"operations_per_second": 0.0}, 0),
    ],
)
def test_each_test_of_sysbench_is_read(lines: list[str], numbers: dict[str, float], errors: int) -> None:
    again = lines[-1].replace("[ 10s ]", "[ 20s ]").replace(": 0.0 lat", ": 5.0 lat").replace("0.00\n", "0.50\n")
    output = read(OutputFormat.SYSBENCH, *lines, again, "[ 30s ] thds: 1 eps: 5.0 lat (ms,95%): 0.10")
    assert dict(first(output).values) == pytest.approx(numbers)
    assert output.table.errors == 2 * errors


def test_errors_of_sysbench_are_those_of_their_own_interval() -> None:
    lines = [
        f"[ {at}s ] thds: 1 tps: 5.0 qps: 5.0 lat (ms,99%): 1.0 err/s: {rate}"
        for at, rate in ((0, 7), (10, 0), (20, 3))
    ]
    samples = read(OutputFormat.SYSBENCH, *lines).table.samples
    assert len(samples) == 2
    assert read(OutputFormat.SYSBENCH, *lines).table.errors == 30


@pytest.mark.parametrize("seconds", [10.4, 10.6, 2.7])
def test_the_rate_of_a_steady_log_is_the_same_to_its_end(seconds: float) -> None:
    lines = [f"{at}, 1000000, 1, 4096, 0" for at in range(10, round(1000 * seconds) + 1, 10)]
    samples = read(OutputFormat.FIO_LOG, *lines).table.samples
    assert [sample.values["operations_per_second"] for sample in samples] == pytest.approx(
        [100] * len(samples), rel=0.05
    )


def test_failures_before_the_first_success_and_after_the_last_are_counted() -> None:
    failed, well = "0 {0} failed 0 {1} 0", "0 {0} 5000 0 {1} 0"
    lines = [(well if 30 <= at < 36 else failed).format(at, 1_790_000_000 + at) for at in range(60)]
    output = read(OutputFormat.PGBENCH, *lines)
    assert output.table.errors == 54
    assert len(output.table.samples) >= 59


def test_averages_of_several_jobs_and_directions_are_one_row() -> None:
    lines = [f"{at}, {latency}, {way}, 0, 0" for way in (0, 1) for at, latency in ((1000, 10), (2001, 20), (3000, 30))]
    table = read(OutputFormat.FIO_LOG, *lines, "1000, 30, 1, 0, 0", unit=LatencyUnit.MICROSECONDS).table
    assert [dict(sample.values) for sample in table.samples] == [
        pytest.approx({"read.mean": 10e-6, "write.mean": 20e-6}),
        pytest.approx({"read.mean": 20e-6, "write.mean": 20e-6}),
        pytest.approx({"read.mean": 30e-6, "write.mean": 30e-6}),
    ]


def test_a_job_that_pauses_by_itself_has_no_stall() -> None:
    pausing = [f"{1000 * at}, 1000, 1, 0, 0" for at in range(300) if at % 60 < 30]
    assert read(OutputFormat.FIO_LOG, *pausing).table.slowest is not None
    often = [f"{1000 * at}, 1000, 1, 0, 0" for at in range(300) if at % 4 == 0 or at % 4 == 1]
    assert read(OutputFormat.FIO_LOG, *often).table.slowest is None


def test_the_last_line_of_a_producers_test_is_no_window() -> None:
    lines = text_of("producer-perf.txt")
    assert "50th" in lines[-1]
    output = read(OutputFormat.PRODUCER_PERF, *lines)
    assert output.table.samples[-1].end == pytest.approx(170, abs=6)
    longest = max(output.table.samples, key=lambda sample: sample.end - sample.start)
    assert longest.end - longest.start == pytest.approx(24.4, abs=0.1)


@pytest.mark.parametrize(
    ("ratio", "unit", "seconds", "said"),
    [
        (1e6, None, 0.005, "nanoseconds"),
        (1e3, None, 5.0, "microseconds"),
        (1e6, LatencyUnit.MICROSECONDS, 5.0, ""),
    ],
)
def test_the_unit_of_a_log_is_given_away_by_its_longest_latency(
    ratio: float, unit: LatencyUnit | None, seconds: float, said: str
) -> None:
    output = read(OutputFormat.HLOG, *hlog([5_000_000, 4_000_000], ratio), unit=unit)
    assert first(output).values["p99"] == pytest.approx(seconds, rel=0.01)
    assert first(output).values["operations_per_second"] == 10
    assert said in output.remark


def test_tags_of_a_log_are_operations_of_one_window() -> None:
    lines = [*hlog([2_000_000, 3_000_000], 1e6, "Tag=read,"), *hlog([4_000_000, 5_000_000], 1e6, "Tag=write,")]
    table = read(OutputFormat.HLOG, *lines).table
    assert [sample.start for sample in table.samples] == [0, 10]
    assert table.samples[1].values["read.p99"] == pytest.approx(0.003, rel=0.01)
    assert table.samples[1].values["write.max"] == pytest.approx(0.005, rel=0.01)
    assert table.samples[1].values["operations_per_second"] == 20


REFUSED: dict[str, tuple[OutputFormat, list[str], str]] = {
    "nothing of it": (OutputFormat.PGBENCH, ["hello"], "out.txt: has no window of pgbench; `pgbench -P 1` writes"),
    "one window": (
        OutputFormat.PRODUCER_PERF,
        text_of("producer-perf.txt")[:2],
        "out.txt: has 1 window of producer-perf",
    ),
    "two runs": (
        OutputFormat.PGBENCH,
        text_of("pgbench-progress.txt") * 2,
        "out.txt line 73: is at 1 s, after one at 70 s",
    ),
    "cut line": (OutputFormat.SYSBENCH, ["[ 1s ] thds: 2 tps: 10"], "out.txt line 1: is a report that cannot be read"),
    "no latency": (
        OutputFormat.SYSBENCH,
        [f"[ {at}s ] thds: 1 eps: 5.0 lat (ms,0%): 0.00" for at in (1, 2)],
        "out.txt: has no latency in any of its windows",
    ),
    "histograms": (OutputFormat.FIO_LOG, ["1000, 1, 4096" + ", 0" * 1216], "out.txt line 1: is of a log of histograms"),
    "another file": (
        OutputFormat.FIO_LOG,
        ["# a comment"],
        "out.txt line 1: '# a comment' is not `milliseconds, latency",
    ),
    "two fio": (OutputFormat.FIO_LOG, ["1, 5, 1, 512", "1, 5, 7, 512"], "out.txt line 2: '1, 5, 7, 512' is not"),
    "no result": (OutputFormat.OMB, ['{"publishRate": 5}'], "out.txt: has no list publishRate"),
    "no number": (
        OutputFormat.OMB,
        ['{"publishRate": ["a"]}'],
        "out.txt: publishRate[0] is 'a', and no number that was measured",
    ),
    "fio's client mode": (
        OutputFormat.FIO_JSON,
        ["{", '"fio version": "fio-3.36", "client_stats": [{"jobname": "a"}]', "}"],
        "out.txt line 3: ends an object of fio's client mode (`client_stats`), which is not read; give what `fio",
    ),
    "damaged": (OutputFormat.HLOG, ["1.0,1.0,1.0,HISTFAAAA"], "out.txt line 1: not an HdrHistogram V2 payload"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_unreadable_load_generator_output_is_refused_by_line_and_with_a_remedy(case: str) -> None:
    format_, lines, message = REFUSED[case]
    assert refusal(format_, *lines).startswith(message)


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("job_bw.1.log", "job_lat.1.log"),
        ("job_iops.2.log", "job_lat.2.log"),
        ("job_clat_hist.1.log", "job_clat.1.log"),
        ("run_slat.1.log", "run_lat.1.log"),
        ("run_slat.log.gz", "run_lat.log.gz"),
    ],
)
def test_fios_other_logs_are_refused_by_their_names(name: str, right: str) -> None:
    words = refusal(OutputFormat.FIO_LOG, "1, 5, 1, 512", "2, 5, 1, 512", name=name)
    assert words.endswith(f"; give the one of latencies, {right}")


def test_a_unit_is_for_formats_that_have_none() -> None:
    with pytest.raises(Problem, match="--latency-unit is for fio-log, hlog, prometheus only"):
        read(OutputFormat.OMB, "{}", unit=LatencyUnit.SECONDS)
    problem = CliRunner().invoke(app, ["analyze", "soak.csv", "--latency-unit", "ms"]).exception
    assert isinstance(problem, Problem)


def test_a_compressed_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    whole = (FILES / "pgbench-log.txt.gz").read_bytes()
    cut = tmp_path / "cut.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    problem = analyze(cut, "pgbench").exception
    assert isinstance(problem, Problem)
    assert "cannot be read" in problem.faults[0].message


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_output_in_the_encoding_of_another_system_is_read(tmp_path: Path, encoding: str) -> None:
    text = (FILES / "pgbench-progress.txt").read_text(encoding="utf-8")
    (tmp_path / "pgbench.err").write_bytes(text.replace("\n", "\r\n").encode(encoding))
    assert "windows of 1 s" in document(analyze(tmp_path / "pgbench.err", "pgbench", "--format", "json"))["read"]


@pytest.mark.parametrize("arguments", [["--from", "pgbench"], []])
def test_a_compression_that_is_not_read_is_named(tmp_path: Path, arguments: list[str]) -> None:
    path = tmp_path / "soak"
    path.write_bytes(b"\x28\xb5\x2f\xfd and so on")
    problem = CliRunner().invoke(app, ["analyze", str(path), *arguments]).exception
    assert isinstance(problem, Problem)
    assert problem.faults[0].message.endswith("compressed with zstd, which is not read; decompress it with `zstd -d`")


def test_progress_by_a_wall_clock_that_was_set_back_is_no_second_run() -> None:
    lines = [f"progress: {1_790_000_000 + at}.5 s, 9.0 tps, lat 2.000 ms stddev 1.0" for at in (10, 20, 30, 5, 15)]
    words = refusal(OutputFormat.PGBENCH, *lines)
    assert words.startswith("out.txt line 4: is 25 s before line 3 by its time: the clock was set back between them")


@pytest.mark.parametrize(
    "sample", ["1e-300", "1e308", "0", "-1", "1e999", "86400001", "null", "true", '"ten"', "[]", "{}"]
)
def test_a_sample_length_that_no_benchmark_has_is_refused_with_its_name(sample: str) -> None:
    text = f'{{"publishRate": [{", ".join(["1000.0"] * 30)}], "sampleRateMillis": {sample}}}'
    assert "sampleRateMillis is" in refusal(OutputFormat.OMB, text)
