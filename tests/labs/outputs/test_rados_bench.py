"""Lines of `rados bench`, with figures since the start and operations in flight."""

from pathlib import Path

import pytest
from tests.labs.outputs.printed import text_of
from tests.labs.outputs.reading import read, refusal, verdict

from cliffwatch.labs.outputs.names import OutputFormat

RADOS = OutputFormat.RADOS_BENCH
HEAD = "  sec Cur ops   started  finished  avg MB/s  cur MB/s last lat(s)  avg lat(s)"
BEGIN = ["hints = 1", "Maintaining 16 concurrent writes of 4194304 bytes to objects of size 4194304", HEAD]


def printed(means: list[float], counts: list[int] | None = None, current: int = 16) -> list[str]:
    """Lines of seconds with these means, in seconds, and counts; the header comes again after each 20."""
    lines, finished, total = (
        [*BEGIN, "    0       0         0         0         0         0           -           0"],
        0,
        0.0,
    )
    for second, (mean, count) in enumerate(zip(means, counts or [100] * len(means), strict=True), 1):
        finished, total = finished + count, total + mean * count
        flown = current if count else 4
        last = f"{mean:.6g}" if count else "-"
        average = total / finished if finished else 0
        lines.append(
            f"{second:5d} {flown:7d} {finished + flown:9d} {finished:9d}   31.9936        48 {last:>11} {average:11.6g}"
        )
        if second % 20 == 0:
            lines += ["2026-09-21T14:00:20.5+0000 min lat: 0.03 max lat: 0.2 avg lat: 0.15", HEAD]
    return lines


def steady(count: int = 60) -> list[float]:
    return [0.16 + number % 5 / 1000 for number in range(count)]


def test_means_and_rates_are_those_of_the_second() -> None:
    samples = read(RADOS, *printed([0.1, 0.2, 0.1], [100, 50, 80])).table.samples
    assert [sample.values["operations_per_second"] for sample in samples] == [100, 50, 80]
    assert [sample.values["mean"] for sample in samples] == pytest.approx([0.1, 0.2, 0.1], rel=1e-3)


def test_the_recording_of_reads_passes(tmp_path: Path) -> None:
    lines = text_of("rados-bench-read.txt")
    output = read(RADOS, *lines)
    assert (output.operations, len(output.table.samples)) == (56_458, 39)
    # Six digits of an average since the start show the first second's.
    assert output.table.samples[0].values["mean"] == pytest.approx(0.00102611)
    assert verdict(tmp_path / "r.txt", RADOS, lines)[0] == "pass"


def test_the_recording_of_writes_has_the_longest_beside_the_stall(tmp_path: Path) -> None:
    name, said = verdict(tmp_path / "r.txt", RADOS, text_of("rados-bench.txt"))
    assert name == "degraded"
    assert "An operation took 12 s, 42 s into the load" in said


def test_a_steady_target_passes_and_a_slower_one_does_not(tmp_path: Path) -> None:
    assert verdict(tmp_path / "r.txt", RADOS, printed(steady()))[0] == "pass"
    slower = [*steady(), *(4 * mean for mean in steady())]
    assert verdict(tmp_path / "r.txt", RADOS, printed(slower))[0] == "degraded"


def test_means_that_six_digits_do_not_show_are_not_measured() -> None:
    samples = read(RADOS, *printed([0.1] * 40, [2_000_000] + [1] * 39)).table.samples
    assert all("mean" not in sample.values for sample in samples[1:])


@pytest.mark.parametrize(("flown", "name"), [(4, "degraded"), (0, "invalid")])
def test_seconds_without_an_end_are_a_stall_while_operations_are_in_flight(
    tmp_path: Path, flown: int, name: str
) -> None:
    lines = printed(steady(), [100] * 30 + [0] * 12 + [100] * 18)
    idle = [
        line.replace("       4 ", f"       {flown} ").replace("      3004 ", f"{3000 + flown:10d} ") for line in lines
    ]
    assert verdict(tmp_path / "r.txt", RADOS, idle)[0] == name


def test_lines_that_are_absent_are_a_gap(tmp_path: Path) -> None:
    lines = printed(steady())
    samples = read(RADOS, *lines[:30], *lines[34:]).table.samples
    ends = [sample.end for sample in samples]
    place = ends.index(29.0)
    assert samples[place].start == 28
    assert sum(sample.end - sample.start for sample in samples) == 56
    assert verdict(tmp_path / "r.txt", RADOS, [*lines[:30], *lines[34:]])[0] == "invalid"


def end(made: int = 6010, longest: str = "0.9") -> list[str]:
    return ["Total time run:         60.1", f"Total writes made:      {made}", f"Max latency(s):         {longest}"]


def test_totals_agree_with_the_lines_and_the_longest_is_in_the_verdict(tmp_path: Path) -> None:
    assert read(RADOS, *printed(steady()), *end()).operations == 6000
    words = refusal(RADOS, *printed(steady()), *end(7000))
    assert "states 7,000 operations in all, and the lines before it add up to 6,000" in words
    name, said = verdict(tmp_path / "r.txt", RADOS, [*printed(steady()), *end(longest="12.5")])
    assert name == "degraded"
    assert "An operation took 12.5 s" in said


REFUSED = {
    "cut": (
        [*printed(steady()), "   61      16      6116"],
        "line 71: is a line of a second that cannot be read: '   61",
    ),
    "in flight": (
        [*BEGIN, "    1      16        20         9   15.9971        16   0.32558  0.209102"],
        "line 4: has 20",
    ),
    "two runs": (
        [*printed(steady(19)), *printed(steady(19))[3:]],
        "line 24: has 0 operations at 0 s, after 1,900 at 19",
    ),
    "the end alone": (end(), "has no window of rados-bench; `rados bench` prints a line for each second"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_lines_are_refused_with_a_remedy(case: str) -> None:
    lines, message = REFUSED[case]
    assert message in refusal(RADOS, *lines)
