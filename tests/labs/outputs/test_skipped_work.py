"""Transactions that pgbench did not execute because they were late, and logs of several of its threads in one file."""

from pathlib import Path

import pytest
from tests.labs.outputs.reading import analyze, read
from typer.testing import Result

from cliffwatch.labs.outputs.names import OutputFormat

START = 1_790_000_000


def analyzed(path: Path, lines: list[str], *arguments: str) -> Result:
    path.write_text("".join(f"{line}\n" for line in lines))
    return analyze(path, "pgbench", *arguments)


def progress(tps: list[int], due: int) -> list[str]:
    """Lines of ten seconds; what is not executed of `due` transactions a second is skipped."""
    return [
        f"progress: {10 * number}.0 s, {rate}.0 tps, lat {20 + number % 3}.000 ms stddev 6.000, 0 failed, "
        f"lag 4.000 ms, {10 * (due - rate)} skipped"
        for number, rate in enumerate(tps, 1)
    ]


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_skipped_transactions_degrade_though_latency_stays(tmp_path: Path, mode: str) -> None:
    result = analyzed(tmp_path / "progress.err", progress([500] * 60 + [350] * 60, due=500), "--mode", mode)
    assert result.stdout.startswith("verdict: degraded")
    assert "90,000 of 600,000 operations that were due were skipped (15 %)." in result.stdout


def test_without_a_skipped_transaction_the_same_lines_pass(tmp_path: Path) -> None:
    result = analyzed(tmp_path / "progress.err", progress([500] * 120, due=500))
    assert result.stdout.startswith("verdict: pass")


@pytest.mark.parametrize(
    ("fields", "completed", "skipped", "failed"),
    [
        ("400 800000 9 1000 9000", 400, 0, 0),
        ("400 800000 9 1000 9000 5 5 1 9", 400, 0, 0),
        # Up to release 14 the number of transactions includes skipped ones, and failures are not counted.
        ("400 800000 9 1000 9000 5 5 1 9 100", 300, 100, 0),
        ("400 800000 9 1000 9000 5 5 1 9 100 2 2 7 4 3", 400, 100, 7),
    ],
)
def test_sums_have_what_was_skipped_and_what_failed(fields: str, completed: int, skipped: int, failed: int) -> None:
    table = read(OutputFormat.PGBENCH, *(f"{START + 10 * number} {fields}" for number in range(3))).table
    assert (table.completed, table.skipped, table.errors) == (3 * completed, 3 * skipped, 3 * failed)


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("is_sorted", [False, True])
def test_sums_of_several_threads_in_one_file_are_added_up(offset: int, is_sorted: bool) -> None:
    lines = [
        f"{START + 10 * number + thread * offset} {100 + thread} {200_000 + thread} 9 1000 {5000 + thread}"
        for thread in range(4)
        for number in range(6)
    ]
    output = read(OutputFormat.PGBENCH, *(sorted(lines) if is_sorted else lines))
    samples = output.table.samples
    assert [(sample.start, sample.end) for sample in samples] == [
        (10 * number, 10 * number + 10) for number in range(6)
    ]
    assert all(sample.values["operations_per_second"] == pytest.approx(40.6) for sample in samples)
    assert all(sample.values["max"] == pytest.approx(0.005003) for sample in samples)
    assert output.operations == 6 * 406
    assert output.remark == "The sums of 4 threads were added up."


def test_sums_of_two_runs_in_one_file_have_a_gap_between() -> None:
    lines = [f"{START + at} 100 200000 9 1000 5000" for at in (*range(0, 100, 10), *range(5000, 5100, 10))]
    samples = read(OutputFormat.PGBENCH, *lines).table.samples
    assert [(sample.start, sample.end) for sample in samples][9:11] == [(90, 100), (5000, 5010)]
