"""Trouble that comes and goes is a finding, whatever its shape; what the first hours had already is none."""

import random
from collections.abc import Callable

import pytest

from cliffwatch.analysis.csv_table import read_table
from cliffwatch.analysis.finding import Finding, FindingKind
from cliffwatch.analysis.isolated import isolated_rises, isolated_sentence
from cliffwatch.analysis.online.replay import replay
from cliffwatch.analysis.online.time_above import TimeAbove
from cliffwatch.analysis.run_analysis import analysis
from cliffwatch.analysis.table import Table
from cliffwatch.analysis.wording import sentence_of

HOUR = 360
Factor = Callable[[int], float]
MODES = pytest.mark.parametrize("mode", ["offline", "online"])


def table_of(
    hours: float,
    factor: Factor,
    *,
    window: float = 10.0,
    phase: Callable[[int], str] | None = None,
    rate: Factor | None = None,
) -> Table:
    """Windows with a p99 of 9 ms times a factor, by number of the window, with noise."""
    noise = random.Random(3)
    rows = []
    for index in range(round(hours * 3600 / window)):
        p99 = 0.009 * factor(index) * noise.lognormvariate(0, 0.1)
        rows.append(
            f"{index * window:g},{p99:.6f},{800 * (rate(index) if rate else 1) * noise.uniform(0.98, 1.02):.1f}"
            + (f",{phase(index)}" if phase else "")
        )
    return read_table(["elapsed_seconds,p99,operations_per_second" + (",phase" if phase else ""), *rows])


def found_in(table: Table, mode: str) -> list[Finding]:
    return (analysis if mode == "offline" else replay)(table.series, table.samples, [], table.window_seconds)


def recurring_in(table: Table, mode: str) -> list[Finding]:
    return [one for one in found_in(table, mode) if one.kind is FindingKind.RECURRING]


def cycles(since: int, period: int, length: int, ratio: float) -> Factor:
    return lambda index: ratio if index >= since and (index - since) % period < length else 1.0


@MODES
def test_half_of_the_time_slow_is_found_from_its_first_minute_on(mode: str) -> None:
    """As one cliff, or as excursions that recur."""
    first = found_in(table_of(12, cycles(6 * HOUR, 72, 36, 5.0)), mode)[0]
    assert first.kind in (FindingKind.CLIFF, FindingKind.RECURRING)
    assert first.onset == pytest.approx(6 * HOUR * 10, abs=30)


@MODES
def test_three_slow_minutes_of_every_twelve_are_one_finding(mode: str) -> None:
    table = table_of(12, cycles(6 * HOUR, 72, 18, 5.0))
    (finding,) = recurring_in(table, mode)
    assert finding.onset == pytest.approx(6 * HOUR * 10, abs=30)
    assert finding.detected is not None
    assert finding.detected - finding.onset <= 3600
    assert finding.ratio == pytest.approx(5.0, rel=0.1)
    recurrence = finding.recurrence
    assert recurrence is not None
    assert recurrence.times == 30
    assert recurrence.spacing_seconds == pytest.approx(720.0, abs=20)
    assert recurrence.length_seconds == pytest.approx(180, abs=30)
    assert finding.until is None
    assert "rises again and again, " in sentence_of(finding, table.series[0])


@MODES
def test_two_slow_nights_are_no_better_than_one(mode: str) -> None:
    """A job of six hours each night, in windows of a minute."""
    slow = cycles(7 * 60, 24 * 60, 6 * 60, 3.0)
    one, two = table_of(24, slow, window=60.0), table_of(36, slow, window=60.0)
    assert [each.kind for each in found_in(one, mode)][:1] == ["cliff"]
    (finding,) = recurring_in(two, mode)
    assert finding.recurrence is not None
    assert finding.recurrence.times == 2
    assert finding.recurrence.spacing_seconds == pytest.approx(86400, abs=120)


@MODES
@pytest.mark.parametrize("ratio", [2.0, 8.0])
def test_a_twentieth_of_the_time_at_twice_the_latency_is_found(ratio: float, mode: str) -> None:
    """Three minutes of every hour."""
    (finding,) = recurring_in(table_of(24, cycles(5 * HOUR, HOUR, 18, ratio)), mode) or found_in(
        table_of(24, cycles(5 * HOUR, HOUR, 18, ratio)), mode
    )
    assert finding.onset == pytest.approx(5 * HOUR * 10, abs=3 * HOUR * 10)


@MODES
@pytest.mark.parametrize(
    ("factor", "rate"),
    [
        (cycles(0, 180, 18, 3.0), None),
        (cycles(8 * HOUR, 4 * HOUR, 12, 4.0), None),
        (cycles(8 * HOUR, HOUR, 30, 3.0), cycles(8 * HOUR, HOUR, 30, 1.4)),
    ],
    ids=["compaction from the start", "two minutes of four hours", "with more load"],
)
def test_excursions_that_are_healthy_are_no_finding(factor: Factor, rate: Factor | None, mode: str) -> None:
    assert recurring_in(table_of(24, factor, rate=rate), mode) == []


@MODES
def test_a_coarse_clocks_ticks_are_no_excursions(mode: str) -> None:
    """2 ms and 1 ms, for a level of 1.6 ms that improves by a fifth."""
    noise = random.Random(8)
    rows = [
        f"{index * 10},{max(1, round(1.62 * (1 - index / 36_000) * noise.lognormvariate(0, 0.12))) / 1000:.3f},800"
        for index in range(20 * HOUR)
    ]
    table = read_table(["elapsed_seconds,p99,operations_per_second", *rows])
    assert recurring_in(table, mode) == []


def test_a_declared_baseline_is_the_reference() -> None:
    slow = cycles(HOUR + 90, 72, 18, 5.0)
    table = table_of(4, slow, phase=lambda index: "baseline" if index < HOUR else "soak")
    (finding,) = recurring_in(table, "online")
    assert finding.onset == pytest.approx((HOUR + 90) * 10, abs=30)
    assert finding.size is not None
    assert (finding.size.baseline.start, finding.size.baseline.end) == (0.0, HOUR * 10)


def test_excursions_that_do_not_come_again_are_over_at_the_last() -> None:
    slow = cycles(6 * HOUR, 72, 18, 5.0)
    table = table_of(30, lambda index: slow(index) if index < 9 * HOUR else 1.0)
    (finding,) = recurring_in(table, "online")
    assert finding.until == pytest.approx(9 * HOUR * 10 - 540, abs=60)


@pytest.mark.parametrize("seed", range(20))
def test_more_slow_windows_never_lower_the_sum(seed: int) -> None:
    """Any further slow windows leave a run that was found a finding, and find it no later."""
    chance = random.Random(seed)
    starts = [chance.randrange(5 * HOUR, 20 * HOUR) for _ in range(6)]
    more = [chance.randrange(5 * HOUR, 20 * HOUR) for _ in range(chance.randrange(1, 8))]

    def slow(moments: list[int]) -> Table:
        high = {index for at in moments for index in range(at, at + 20)}
        return table_of(20, lambda index: 6.0 if index in high else 1.0)

    def detected(table: Table) -> float:
        judge = TimeAbove(table.series, table.window_seconds)
        return next((sample.end for sample in table.samples if judge.feed(sample, True)), float("inf"))

    merged = detected(slow([*starts, *more]))
    assert merged <= detected(slow(starts)) or merged < float("inf")


def test_isolated_rises_are_stated_with_time_and_size() -> None:
    freezes = {12 * HOUR + index for index in range(24)} | {20 * HOUR}
    table = table_of(36, lambda index: 60.0 if index in freezes else 1.0)
    assert found_in(table, "offline") == []
    rises = isolated_rises(table.series, table.samples, [], [], table.window_seconds)
    assert [(one.start, one.end) for one in rises] == [(432000 / 10, 432000 / 10 + 240), (72000.0, 72010.0)]
    said = isolated_sentence(rises, 0.0)
    assert said.startswith("2 isolated rises are no finding")
    assert "for 4m at 12h" in said
    assert "for 10 s at 20h" in said


def test_a_rise_that_is_part_of_a_finding_is_not_isolated() -> None:
    table = table_of(12, cycles(6 * HOUR, 72, 18, 8.0))
    findings = found_in(table, "offline")
    assert isolated_rises(table.series, table.samples, [], findings, table.window_seconds) == []
