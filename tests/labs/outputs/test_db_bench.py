"""db_bench's lines of each thread, whose intervals differ in length."""

from pathlib import Path

import pytest
from tests.labs.outputs.printed import text_of
from tests.labs.outputs.reading import read, refusal, verdict

from cliffwatch.labs.outputs.names import OutputFormat

DB_BENCH = OutputFormat.DB_BENCH


def line(end: float, seconds: float, operations: int, total: int, thread: int = 0) -> str:
    rates = f"({operations / seconds:.1f},{total / end:.1f})"
    return (
        f"2026/09/21-14:00:00  ... thread {thread}: ({operations},{total}) ops and {rates} ops/second in"
        f" ({seconds:.6f},{end:.6f}) seconds"
    )


def printed(lengths: list[float], thread: int = 0, late: float = 0.0) -> list[str]:
    """Lines of a thread, of 1000 operations each; the first one is later."""
    ends = [late + sum(lengths[: number + 1]) for number in range(len(lengths))]
    begins = [0.0, *ends]
    return [line(end, end - begins[at], 1000, 1000 * (at + 1), thread) for at, end in enumerate(ends)]


def steady(count: int = 60) -> list[float]:
    return [1 + number % 5 / 100 for number in range(count)]


def test_a_steady_target_passes_and_a_slower_one_does_not(tmp_path: Path) -> None:
    lines = [*printed(steady()), *printed(steady(), 1, 0.4)]
    assert verdict(tmp_path / "d.txt", DB_BENCH, lines)[0] == "pass"
    slow = steady() + [4 * seconds for seconds in steady()]
    assert verdict(tmp_path / "d.txt", DB_BENCH, [*printed(slow), *printed(slow, 1)])[0] == "degraded"


def test_a_recording_with_a_thread_that_stood_still_is_degraded(tmp_path: Path) -> None:
    lines = text_of("db_bench.txt")
    output = read(DB_BENCH, *lines)
    assert output.operations == 114_000
    name, words = verdict(tmp_path / "d.txt", DB_BENCH, lines)
    assert name == "degraded"
    assert "The mean rose 16×" in words


def test_operations_of_an_interval_are_spread_over_it() -> None:
    samples = read(DB_BENCH, *printed([1, 1, 1, 2, 1])).table.samples
    assert [sample.values["operations_per_second"] for sample in samples] == pytest.approx(
        [1000] * 3 + [500] * 2 + [1000]
    )
    assert [sample.values["mean"] for sample in samples] == pytest.approx([0.001] * 3 + [0.002] * 2 + [0.001])


def test_threads_are_added_up_where_both_are_known() -> None:
    output = read(DB_BENCH, *printed([1.0] * 30), *printed([1.0] * 28, 1, 0.5))
    samples = output.table.samples
    assert samples[5].values["operations_per_second"] == pytest.approx(2000)
    assert samples[5].values["mean"] == pytest.approx(0.001)
    assert samples[-1].end == 28
    assert output.remark == "The intervals of 2 threads were added up."


def test_lines_that_are_absent_are_a_gap(tmp_path: Path) -> None:
    lines = printed([1.0] * 600)
    lines = [*lines[:300], *lines[304:]]
    samples = read(DB_BENCH, *lines).table.samples
    assert [(each.start, each.end) for each in samples[299:301]] == [(299, 300), (304, 305)]
    few = printed([1.0] * 100)
    assert "states 100,000 operations in all, and the lines before it add up to 96,000" in refusal(
        DB_BENCH, *few[:50], *few[54:]
    )


def test_an_interval_without_an_operation_is_a_stall(tmp_path: Path) -> None:
    before = printed([1.0] * 60)
    none = [line(61 + at, 1, 0, 60_000) for at in range(12)]
    after = [line(73 + at, 1, 1000, 61_000 + 1000 * at) for at in range(60)]
    name, words = verdict(tmp_path / "d.txt", DB_BENCH, [*before, *none, *after])
    assert name == "degraded"
    assert "Nothing was completed for 12 s" in words


def end(operations: int) -> str:
    return f"fillrandom   :     983.115 micros/op 2030 ops/sec 57.610 seconds {operations} operations;    0.2 MB/s"


def test_the_line_at_the_end_agrees_with_the_threads() -> None:
    assert read(DB_BENCH, *printed([1.0] * 60), end(61_000)).operations == 60_000
    words = refusal(DB_BENCH, *printed([1.0] * 60), end(70_000))
    assert words == "out.txt line 61: states 70,000 operations in all, and the lines before it add up to 60,000"


REFUSED = {
    "cut": ([*printed([1.0] * 9), printed([1.0] * 10)[9][:70]], "line 10: is a line of a thread that cannot be read"),
    "two": (printed([1.0] * 9) * 2, "line 10: is at 1 s of thread 0, after one at 9 s; give the output of one of"),
    "no length": ([line(5, 1, 9, 9).replace("(1.000000", "(0.000000")], "line 1: is of an interval of 0 s that ends"),
    "far": ([*printed([1.0] * 9), line(1e9, 1, 1000, 10_000)], "line 10: is 1e+09 s after the start, too far"),
    "the end alone": (
        [end(5)],
        "has no window of db_bench; `db_bench --stats_interval_seconds=1` prints lines of each",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_lines_are_refused_with_a_remedy(case: str) -> None:
    lines, message = REFUSED[case]
    assert message in refusal(DB_BENCH, *lines)
