"""HdrHistogram logs as people make them: appended, put together with `cat`, with wrong lengths and maxima."""

from itertools import pairwise

import pytest
from tests.labs.outputs.reading import first, read, refusal

from cliffwatch.base.histogram import Histogram
from cliffwatch.labs.outputs.formats import Output
from cliffwatch.labs.outputs.names import LatencyUnit, OutputFormat

BASE = 1_790_000_000


def head(base: float) -> list[str]:
    return [
        "#[Histogram log format version 1.3]",
        f"#[BaseTime: {base:.3f} (seconds since epoch)]",
        f"#[StartTime: {base:.3f} (seconds since epoch), Mon Sep 21 14:13:20 UTC 2026]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]


def interval(
    start: float, length: float, value: int = 5_000_000, tag: str = "raw", ratio: float = 1e6, count: int = 100
) -> str:
    return f"Tag={tag},{start:.3f},{length:.3f},{value / ratio:.3f},{Histogram.from_values({value: count}).encode()}"


def spans(output: Output) -> list[tuple[float, float]]:
    return [(round(sample.start, 3), round(sample.end, 3)) for sample in output.table.samples]


def rates(output: Output) -> list[float]:
    return [round(sample.values["operations_per_second"], 3) for sample in output.table.samples]


def test_operations_that_a_run_logs_from_two_moments_are_counted_once() -> None:
    lines = [interval(at, 5, tag=tag) for at in (0, 5) for tag in ("publish", "publish_service")]
    output = read(OutputFormat.HLOG, *head(BASE), *lines)
    assert rates(output) == [20.0, 20.0]
    assert "publish_service has the same operations" in output.remark
    alone = read(OutputFormat.HLOG, *head(BASE), *(interval(at, 5, tag="publish_service") for at in (0, 5)))
    assert rates(alone) == [20.0, 20.0]


def test_a_log_that_a_second_run_appended_to_has_a_gap_between() -> None:
    one = [interval(at, 5) for at in (0, 5, 10)]
    output = read(OutputFormat.HLOG, *head(BASE), *one, *head(BASE + 3600), *one)
    assert spans(output) == [(0, 5), (5, 10), (10, 15), (3600, 3605), (3605, 3610), (3610, 3615)]
    assert rates(output) == [20] * 6
    assert "2 logs were placed by their own start times" in output.remark


@pytest.mark.parametrize("late", [0.0, 0.003, 0.004])
def test_logs_of_several_load_generators_are_merged_interval_by_interval(late: float) -> None:
    one = [interval(at, 10, 5_000_000) for at in range(0, 40, 10)]
    other = [interval(at + late, 10 - late, 80_000_000) for at in range(0, 40, 10)]
    output = read(OutputFormat.HLOG, *head(BASE), *one, *head(BASE), *other)
    assert len(output.table.samples) == 4
    assert rates(output) == pytest.approx([20] * 4, rel=0.01)
    assert first(output).values["raw.p50"] == pytest.approx(0.005, rel=0.01)
    assert first(output).values["raw.p99"] == pytest.approx(0.08, rel=0.01)
    assert output.operations == 800


def test_logs_that_begin_half_an_interval_apart_do_not_overlap() -> None:
    one, other = ([interval(at + late, 10) for at in range(0, 60, 10)] for late in (0.0, 5.3))
    output = read(OutputFormat.HLOG, *head(BASE), *one, *head(BASE), *other)
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(spans(output)))
    assert rates(output)[1:-1] == [20] * (len(output.table.samples) - 2)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            [interval(0, 5), interval(5, 5), interval(0, 5)],
            "line 3: is at 0 s, after one at 5 s in line 2; give the output",
        ),
        (
            [interval(0, 5), interval(5, 5), *head(BASE), interval(0, 5)],
            "line 7: is of a second log in the file, and one of them has no StartTime; give the output of one run",
        ),
        (
            [*head(BASE), interval(0, 5), interval(5, 5), *head(BASE), interval(0, 10), interval(10, 10)],
            "is of intervals of 10 s, beside others of 5 s; give the output of one load generator at a time",
        ),
        (
            [interval(BASE + at, 5) for at in (0, 5, 10, 7)],
            "line 4: is 3 s before line 3 by its time: the clock was set back between them",
        ),
        ([interval(0, 1e-9), interval(1e-9, 1e-9), interval(1e-3, 1e-9)], "give the output of one run at a time"),
    ],
)
def test_sections_that_cannot_be_placed_are_refused(lines: list[str], said: str) -> None:
    assert said in refusal(OutputFormat.HLOG, *lines)


@pytest.mark.parametrize("zero", [0, BASE])
def test_a_length_that_holds_the_end_of_the_interval_is_not_believed(zero: int) -> None:
    starts = [*range(0, 60, 5), *range(300, 360, 5)]
    right, wrong = ([interval(zero + at, 5 + extra * (zero + at)) for at in starts] for extra in (0, 1))
    output, expected = read(OutputFormat.HLOG, *wrong), read(OutputFormat.HLOG, *right)
    assert spans(output) == spans(expected)
    assert rates(output) == rates(expected) == [20] * len(starts)
    assert "the distance of their starts was taken for their length" in output.remark
    assert "distance" not in expected.remark


def test_lengths_that_exceed_the_distance_by_their_rounding_are_believed() -> None:
    output = read(OutputFormat.HLOG, *(interval(5 * number, 5.004) for number in range(10)))
    assert "distance" not in output.remark


def test_a_longest_latency_that_differs_from_its_histogram_is_said_or_refused() -> None:
    lines = [interval(at, 5) for at in (0, 5, 10)]
    output = read(OutputFormat.HLOG, *lines, interval(15, 5).replace(",5.000,HIST", ",4.800,HIST"))
    assert "Line 4 states 4.8 ms as its longest latency, and its histogram has 5 ms (4.0 % apart)." in output.remark
    words = refusal(OutputFormat.HLOG, *lines, interval(15, 5).replace(",5.000,HIST", ",2.500,HIST"))
    assert "line 4: states 2.5 ms as its longest latency, and its histogram has 5 ms: more than 10 % apart" in words


@pytest.mark.parametrize(
    ("value", "ratio", "said"),
    [
        (42_000, 1.0, "does not show the unit of its latencies; say what its latencies are in: `--latency-unit ns`"),
        (42_000, 17.0, "times as large, which fits no unit"),
        # Microseconds, whose longest is stated in seconds by a writer's default ratio: 9.5 ms, not 9.5 µs.
        (9_500, 1e6, "half of its latencies would be below 10 µs in nanoseconds"),
    ],
)
def test_a_unit_that_a_log_does_not_show_is_asked_for(value: int, ratio: float, said: str) -> None:
    lines = [interval(at, 5, value, ratio=ratio) for at in (0, 5, 10)]
    assert said in refusal(OutputFormat.HLOG, *lines)
    output = read(OutputFormat.HLOG, *lines, unit=LatencyUnit.MICROSECONDS)
    assert first(output).values["raw.p99"] == pytest.approx(value / 1e6, rel=0.06)
