"""warp's operations: numbered lines with times, separated by tabs."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.labs.outputs.reading import analyze, read, refusal, verdict

from cliffwatch.base.errors import Problem
from cliffwatch.labs.outputs.names import OutputFormat

WARP = OutputFormat.WARP
OLD = "idx\tthread\top\tn_objects\tbytes\tfile\terror\tstart\tfirst_byte\tend\tduration_ns"
HEAD = OLD.replace("\tn_objects", "\tclient_id\tn_objects").replace("\tfile", "\tendpoint\tfile")
CATEGORIES = HEAD.replace("\tend\t", "\tlast_byte\tend\t") + "\tcat"
START = 1_790_000_000
SERIES = "; `warp … --full` writes a line for each operation into a .csv.zst, which `zstd -d` unpacks"


def time(nanoseconds: int) -> str:
    """A time as Go's RFC3339Nano has it: digits of a second without zeros at the end."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    moment = datetime.fromtimestamp(START + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{moment}.{rest:09d}".rstrip("0").rstrip(".") + "Z"


def line(number: int, operation: str = "GET", error: str = "", milliseconds: float = 0.0, head: str = HEAD) -> str:
    start, length = 100_000_000 * number, round(1e6 * (milliseconds or 5 + number % 7 / 10))
    fields = {
        "idx": str(number),
        "thread": str(number % 4),
        "op": operation,
        "client_id": "aB3x",
        "n_objects": "1",
        "bytes": "4096",
        "endpoint": "http://127.0.0.1:9000",
        "file": f"(x/{number}.rnd",
        "error": error,
        "start": time(start),
        "first_byte": time(start + length // 2) if operation == "GET" else "",
        "last_byte": "",
        "end": time(start + length),
        "duration_ns": str(length),
        "cat": "0",
    }
    return "\t".join(fields[name] for name in head.split("\t"))


def steady(seconds: int, head: str = HEAD) -> list[str]:
    return [line(number, head=head) for number in range(10 * seconds)]


@pytest.mark.parametrize("head", [OLD, HEAD, CATEGORIES], ids=["0.3", "1.0", "1.6"])
def test_windows_have_exact_figures_of_their_operations(head: str) -> None:
    output = read(WARP, head, *steady(60, head), "# warp get --full --host=127.0.0.1:9000")
    assert output.operations == output.table.completed == 600
    values = output.table.samples[10].values
    assert values["operations_per_second"] == 10
    assert (values["get.p50"], values["get.max"]) == pytest.approx((0.0053, 0.0056), rel=1e-3)
    assert len(output.table.samples) == 60


def test_a_steady_target_passes_and_a_slower_one_does_not(tmp_path: Path) -> None:
    assert verdict(tmp_path / "w.tsv", WARP, [HEAD, *steady(60)])[0] == "pass"
    slow = [line(number, milliseconds=5 if number < 600 else 50) for number in range(1200)]
    assert verdict(tmp_path / "w.tsv", WARP, [HEAD, *slow])[0] == "degraded"


def test_operations_that_a_target_held_are_a_stall(tmp_path: Path) -> None:
    held = [line(300 + number, milliseconds=12_000 - 100 * number) for number in range(4)]
    later = [line(number) for number in range(424, 600)]
    lines = [HEAD, *steady(30), *held, *later]
    name, said = verdict(tmp_path / "w.tsv", WARP, renumbered(lines))
    assert name == "degraded"
    assert "stall" in said
    oldest = [sample.oldest_seconds for sample in read(WARP, *renumbered(lines)).table.samples[31:41]]
    assert oldest == pytest.approx([2, 3, 4, 5, 6, 7, 8, 9, 10, 11], abs=0.1)


def renumbered(lines: list[str]) -> list[str]:
    return [lines[0], *("\t".join([str(number), *each.split("\t")[1:]]) for number, each in enumerate(lines[1:]))]


def test_operations_of_a_mix_have_columns_of_their_own() -> None:
    mixed = [line(number, ("GET", "PUT", "DELETE")[number % 3]) for number in range(600)]
    names = {series.name for series in read(WARP, HEAD, *mixed).table.series}
    assert {"get.p99", "put.p99", "delete.p99", "operations_per_second"} < names


@pytest.mark.parametrize("error", ["read tcp: i/o timeout", '"of ""quotes"" and\nlines"'])
def test_an_operation_with_an_error_failed(tmp_path: Path, error: str) -> None:
    lines = [HEAD, *steady(60), *line(600, error=error).split("\n"), line(601)]
    table = read(WARP, *lines).table
    assert (table.completed, table.errors) == (601, 1)
    assert verdict(tmp_path / "w.tsv", WARP, lines)[0] == "degraded"


def test_operations_that_are_absent_are_refused() -> None:
    few = [each for number, each in enumerate(steady(60)) if not 300 <= number < 340]
    words = refusal(WARP, HEAD, *few)
    assert words == "out.txt line 561: states 600 operations in all, and the lines before it add up to 560"


def test_a_file_that_is_compressed_with_zstd_is_refused_with_the_command(tmp_path: Path) -> None:
    path = tmp_path / "warp-get.csv.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd\x04\x00")
    problem = analyze(path, WARP).exception
    assert isinstance(problem, Problem)
    assert "decompress it with `zstd -d`" in problem.faults[0].message


REFUSED = {
    "segments": (
        ["index\top\thost\tduration_s\tobjects_per_op"],
        f"line 1: is of warp's segments, which have means only{SERIES}",
    ),
    "header cut": ([OLD.partition("\tstart")[0]], f"line 1: is a header without start, end, duration_ns{SERIES}"),
    "cut": ([HEAD, *steady(3), line(30)[:40]], "line 32: '30 2 GET aB3x 1 4096 http://127.0.0.1:90' is no operation"),
    "no number": ([HEAD, line(1).replace("\t4096", "\t4096", 1).replace("1\t1\tGET", "x\t1\tGET")], "line 2: 'x 1 GET"),
    "no time": ([HEAD, line(1).replace("2026", "20x6")], "line 2: '1 1 GET"),
    "negative": ([HEAD, line(1, milliseconds=-5)], "line 2: '1 1 GET"),
    "duration of another operation": ([HEAD, line(1).replace("\t5100000", "\t95100000")], "line 2: '1 1 GET"),
    "open quote": (
        [HEAD, *steady(3), line(30, error='"never closed'), *steady(3)],
        "cannot be read (unexpected end of",
    ),
    "nothing": (["hello"], f"has no window of warp{SERIES}"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_lines_are_refused_with_a_remedy(case: str) -> None:
    lines, message = REFUSED[case]
    words = refusal(WARP, *lines)
    assert message in words
    assert words.endswith(SERIES.removeprefix("; "))
