"""elbencho's live statistics: lines of each phase from its own start, with rates that are rounded down."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.labs.outputs.printed import text_of
from tests.labs.outputs.reading import first, read, refusal, verdict

from cliffwatch.labs.outputs.names import OutputFormat

ELBENCHO = OutputFormat.ELBENCHO
HEAD = (
    "ISO Date,Label,Phase,RuntimeMS,Rank,MixType,Done%,DoneBytes,MiB/s,IOPS,Entries,Entries/s,Lat Ent us,Lat IO us,"
    "Active,CPU,Service,"
)
UNDATED = HEAD.removeprefix("ISO Date,")
WITHOUT_LATENCIES = UNDATED.replace("Lat Ent us,Lat IO us,", "")
START = 1_790_000_000


def line(
    second: int, iops: int = 2560, micros: int = 800, mix: str = "", done: int | None = None, **others: int
) -> str:
    """A line of a second, of the phase that began at `began`; operations are of 4 KiB."""
    at = datetime.fromtimestamp(START + second, UTC).isoformat(timespec="milliseconds").replace("+00:00", "+0000")
    began, entries = others.get("began", 0), others.get("entries", 0)
    size = 4096 * (2560 * (second - began) if done is None else done)
    phase = "READ" if began else "RWMIX" if mix else "WRITE"
    latencies = f"{12 if entries else 0},{round(micros * (1 + second % 5 / 50)) if iops else 0}"
    return (
        f"{at},,{phase},{1000 * (second - began)},Total,{mix},0,{size},{iops // 256},{iops},"
        f"{entries * (second - began)},{entries},{latencies},1,20,,"
    )


def steady(begin: int = 1, end: int = 121) -> list[str]:
    return [line(second) for second in range(begin, end)]


def undated(lines: list[str]) -> list[str]:
    return [each.partition(",")[2] for each in lines]


def test_windows_have_the_figures_of_their_lines() -> None:
    output = read(ELBENCHO, HEAD, *steady())
    assert dict(first(output).values) == pytest.approx({"write.mean": 0.000816, "operations_per_second": 2560})
    assert output.operations == output.table.completed == 120 * 2560
    assert [(each.start, each.end) for each in output.table.samples[:2]] == [(0, 1), (1, 2)]


def test_lines_of_single_workers_and_of_the_console_are_passed_over() -> None:
    workers = [each.replace(",Total,", ",0,").replace(",2560,", ",,") for each in steady()]
    lines = [each for pair in zip(steady(), workers, strict=True) for each in pair]
    assert read(ELBENCHO, "OPERATION   RESULT TYPE", HEAD, *lines, "WRITE  Elapsed time : 2m0s").operations == 307_200


def test_reads_and_writes_of_a_mix_are_one_window() -> None:
    lines = [each for at in range(1, 31) for each in (line(at, mix="Write"), line(at, 5120, 200, "Read", 5120 * at))]
    values = first(read(ELBENCHO, HEAD, *lines)).values
    expected = {"rwmix.write.mean": 0.000816, "rwmix.read.mean": 0.000204, "operations_per_second": 7680}
    assert dict(values) == pytest.approx(expected)


def test_the_recording_of_a_mix_and_of_reads_after_it_is_read() -> None:
    output = read(ELBENCHO, *text_of("elbencho-mix.csv"))
    names = {series.name for series in output.table.series}
    assert names == {"rwmix60.write.mean", "rwmix60.read.mean", "read.mean", "operations_per_second"}
    assert len(output.table.samples) == 35
    assert dict(first(output).values) == pytest.approx(
        {"rwmix60.write.mean": 78e-6, "rwmix60.read.mean": 448e-6, "operations_per_second": 200}
    )


def test_entries_are_operations_where_there_is_no_io() -> None:
    lines = [line(second, 0, done=0, entries=900) for second in range(1, 31)]
    values = first(read(ELBENCHO, HEAD, *lines)).values
    assert dict(values) == pytest.approx({"write.entry.mean": 12e-6, "operations_per_second": 900})


def test_a_steady_target_passes_and_a_slower_one_does_not(tmp_path: Path) -> None:
    assert verdict(tmp_path / "e.csv", ELBENCHO, [HEAD, *steady()])[0] == "pass"
    slower = [line(second, micros=3200) for second in range(121, 241)]
    assert verdict(tmp_path / "e.csv", ELBENCHO, [HEAD, *steady(), *slower])[0] == "degraded"


def test_seconds_without_operations_are_a_stall(tmp_path: Path) -> None:
    held = [line(second, 0, done=2560 * 60) for second in range(61, 75)]
    later = [line(second, done=2560 * (second - 14)) for second in range(75, 135)]
    lines = [HEAD, *steady(1, 61), *held, *later]
    assert dict(read(ELBENCHO, *lines).table.samples[62].values) == {"operations_per_second": 0}
    assert verdict(tmp_path / "e.csv", ELBENCHO, lines)[0] == "degraded"


def test_a_rate_that_was_rounded_down_to_0_is_not_measured() -> None:
    lines = [line(second, 0, done=second) for second in range(1, 31)]
    words = refusal(ELBENCHO, HEAD, *lines)
    assert words == "out.txt: has no latency in any of its windows, so nothing can be found in it"
    slow = [each.replace(",0,0,1,20,", ",0,2500000,1,20,") for each in lines]
    assert dict(first(read(ELBENCHO, HEAD, *slow)).values) == {"write.mean": 2.5}


def test_lines_that_are_absent_are_a_gap(tmp_path: Path) -> None:
    lines = [HEAD, *steady(1, 61), *steady(64, 121)]
    samples = read(ELBENCHO, *lines).table.samples
    assert [(each.start, each.end) for each in samples[59:61]] == [(59, 60), (63, 64)]
    assert verdict(tmp_path / "e.csv", ELBENCHO, lines)[0] == "invalid"


def test_phases_follow_one_another_by_date_or_without_a_gap() -> None:
    phase = [line(second, began=200) for second in range(201, 261)]
    dated = read(ELBENCHO, HEAD, *steady(), *phase)
    assert [(each.start, each.end) for each in dated.table.samples[119:121]] == [(119, 120), (200, 201)]
    assert {series.name for series in dated.table.series} == {"write.mean", "read.mean", "operations_per_second"}
    plain = read(ELBENCHO, UNDATED, *undated([*steady(), *phase]))
    assert [(each.start, each.end) for each in plain.table.samples[119:121]] == [(119, 120), (120, 121)]
    assert plain.remark.endswith("a phase counts as begun where the one before it ended.")


@pytest.mark.parametrize(("change", "what"), [({"done": 9}, "bytes"), ({"done": 2560, "entries": 7}, "entries")])
def test_rates_that_differ_from_the_sums_are_refused(change: dict[str, int], what: str) -> None:
    if what == "bytes":
        lines = [line(second, done=second * change["done"]) for second in range(1, 121)]
    else:
        lines = [line(second, entries=7).replace(f",{7 * second},7,", f",{99 * second},7,") for second in range(1, 121)]
    assert f" {what} in all, and the lines before it add up to " in refusal(ELBENCHO, HEAD, *lines)


REFUSED = {
    "no latencies": (
        [WITHOUT_LATENCIES, *steady()],
        "line 1: is a header without latencies, which elbencho before 2.3.1 does not write; run a later release, or",
    ),
    "header cut": (
        ["ISO Date,Label,Phase,RuntimeMS,Rank,MixType,Done%,DoneBytes"],
        "line 1: is a header without MiB/s, IOPS, Entries, Entries/s; give the file as it is",
    ),
    "cut": ([HEAD, *steady(), line(121)[:36]], "line 122: '2026-09-21T14:15:21.000+0000,,WRITE"),
    "no number": ([HEAD, line(1).replace(",2560,", ",ten,")], "line 2: "),
    "no date": ([HEAD, line(1).replace("2026", "20x6")], "line 2: "),
    "two runs": (
        [HEAD, *steady(), *steady()],
        "line 122: is 119 s before line 121 by its time: the clock was set back",
    ),
    "nothing": (
        ["hello"],
        "has no window of elbencho; `elbencho --livecsv FILE --liveint 1000` writes a line for each",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_lines_are_refused_with_a_remedy(case: str) -> None:
    lines, message = REFUSED[case]
    assert message in refusal(ELBENCHO, *lines)
