"""Totals that programs state at the end: what was read has to agree with them."""

import json

import pytest
from tests.labs.outputs.reading import read, refusal

from cliffwatch.labs.outputs.names import OutputFormat


def pgbench(processed: int, failed: int = 20, skipped: int = 40) -> list[str]:
    """Twenty lines of ten seconds, of 5,000 transactions, 1 failed and 2 skipped each."""
    progress = "progress: {0}.0 s, 500.0 tps, lat 2.000 ms stddev 1.000, 1 failed, lag 0.100 ms, 2 skipped"
    return [
        *(progress.format(10 * number) for number in range(1, 21)),
        "transaction type: <builtin: simple update>",
        f"number of transactions actually processed: {processed}",
        f"number of failed transactions: {failed} (0.020%)",
        f"number of transactions skipped: {skipped} (0.040%)",
        "number of transactions above the 100.0 ms latency limit: 7/100000 (0.007 %)",
    ]


def sysbench(events: int) -> list[str]:
    lines = [
        f"[ {10 * number}s ] thds: 4 tps: 50.0 qps: 50.0 lat (ms,99%): 20.0 err/s: 0.00" for number in range(1, 21)
    ]
    return [
        *lines,
        "General statistics:",
        "    total time:   200.0s",
        f"    total number of events:              {events}",
    ]


def fio(total_ios: list[int], counted: list[int]) -> list[str]:
    def job(total: int, count: int) -> dict[str, object]:
        nothing = {"io_bytes": 0, "runtime": 0, "total_ios": 0, "lat_ns": {"N": 0, "mean": 0.0, "max": 0}}
        latency = {"N": count, "mean": 5e6, "max": 9_000_000}
        written = {"io_bytes": 4096 * total, "runtime": 1000, "total_ios": total, "lat_ns": latency}
        return {"error": 0, "read": nothing, "trim": nothing, "write": written, "sync": {}}

    documents = [
        {"timestamp_ms": 1_790_000_000_000 + 1000 * second, "jobs": [job(total, count)]}
        for second, (total, count) in enumerate(zip(total_ios, counted, strict=True), 1)
    ]
    return [line for document in documents for line in json.dumps(document, indent=1).splitlines()]


@pytest.mark.parametrize("processed", [99_500, 100_000, 100_900, 104_000])
def test_transactions_after_the_last_line_are_in_the_total_alone(processed: int) -> None:
    assert len(read(OutputFormat.PGBENCH, *pgbench(processed)).table.samples) == 20


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (pgbench(90_000), "line 22: states 90,000 transactions in all, and the lines before it add up to"),
        (pgbench(150_000), "line 22: states 150,000 transactions in all"),
        (
            pgbench(100_000, failed=5000),
            "line 23: states 5,000 failed transactions in all, and the lines before it add",
        ),
        (pgbench(100_000, skipped=5000), "line 24: states 5,000 skipped transactions in all"),
    ],
)
def test_a_summary_of_pgbench_that_differs_is_refused(lines: list[str], said: str) -> None:
    assert said in refusal(OutputFormat.PGBENCH, *lines)


@pytest.mark.parametrize(("events", "is_right"), [(10_000, True), (10_400, True), (9000, False), (15_000, False)])
def test_events_of_sysbench_agree_with_its_lines(events: int, is_right: bool) -> None:
    if is_right:
        assert len(read(OutputFormat.SYSBENCH, *sysbench(events)).table.samples) == 20
    else:
        assert f"line 23: states {events:,} events in all" in refusal(OutputFormat.SYSBENCH, *sysbench(events))


def test_latencies_of_fio_are_as_many_as_its_operations() -> None:
    counts = [100, 200, 300]
    assert read(OutputFormat.FIO_JSON, *fio(counts, counts)).operations == 300
    words = refusal(OutputFormat.FIO_JSON, *fio(counts, [100, 150, 200]))
    assert "states 300 operations in all, and the lines before it add up to 200" in words
