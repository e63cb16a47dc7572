"""Rare spikes that come too evenly or too often for chance are found; what scatters, or comes by chance, is none."""

import math
import random
from collections.abc import Callable, Iterable, Sequence

import pytest

from cliffwatch.analysis.csv_table import read_table
from cliffwatch.analysis.finding import Finding
from cliffwatch.analysis.online.replay import replay
from cliffwatch.analysis.run_analysis import analysis
from cliffwatch.analysis.table import Table
from cliffwatch.analysis.wording import sentence_of

WINDOW = 10.0
#: Of p50, p99 and p99.9, in seconds.
FLOOR = (0.004, 0.03, 0.09)
HOUR = 360
Factors = Callable[[int], Sequence[float]]


def table_of(count: int, factors: Factors, rate: Callable[[int], float] = lambda _: 50.0, seed: int = 1) -> Table:
    """Windows whose quantiles are so many times their floor, with the noise of a healthy run."""
    noise = random.Random(seed)
    rows = []
    for index in range(count):
        values = [
            level * factor * noise.lognormvariate(0, 0.12) for level, factor in zip(FLOOR, factors(index), strict=True)
        ]
        rows.append(",".join([f"{index * WINDOW:g}", *(f"{value:.6f}" for value in values), f"{rate(index):.1f}"]))
    return read_table(["elapsed_seconds,p50,p99,p999,operations_per_second", *rows])


def found_in(table: Table, mode: str) -> list[Finding]:
    return (analysis if mode == "offline" else replay)(table.series, table.samples, [], table.window_seconds)


def bursts(at: Iterable[int], *, p99: float = 1.0, p999: float = 36.0) -> Factors:
    moments = frozenset(at)
    return lambda index: (1.0, p99, p999) if index in moments else (1.0, 1.0, 1.0)


def words_of(finding: Finding, table: Table) -> str:
    return sentence_of(finding, next(one for one in table.series if one.name == finding.series))


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_one_slow_window_every_ten_minutes_is_one_finding(mode: str) -> None:
    moments = range(63, 6 * HOUR, 62)
    table = table_of(6 * HOUR, bursts(moments))
    (finding,) = found_in(table, mode)
    assert (finding.kind, finding.series, finding.onset, finding.until) == ("spikes", "p999", 630.0, None)
    # From the fourth on.
    assert finding.detected == (moments[3] + 2) * WINDOW
    recurrence = finding.recurrence
    assert recurrence is not None
    assert (recurrence.times, recurrence.length_seconds, recurrence.spacing_seconds) == (len(moments), 10.0, 620.0)
    assert recurrence.is_from_start
    assert finding.level == pytest.approx(36 * FLOOR[2], rel=0.15)
    said = f"{len(moments)} times, 10 s each, 10m20s apart, from the start ("
    assert said in words_of(finding, table)


@pytest.mark.parametrize("mode", ["offline", "online"])
@pytest.mark.parametrize("lower", [range(1900, 1900), range(1900, 1920), range(1885, 1905)], ids=["no", "after", "in"])
def test_a_spike_counts_also_in_a_longer_rise_that_it_stands_out_of(mode: str, lower: range) -> None:
    moments = range(1500, 2400, 200)

    def factors(index: int) -> Sequence[float]:
        rise = 40.0 if index in moments else 3.0 if index in lower else 1.0
        return (1.0, rise, rise)

    (finding,) = found_in(table_of(2500, factors), mode)
    assert (finding.kind, finding.onset) == ("spikes", moments[0] * WINDOW)
    assert finding.recurrence is not None
    assert (finding.recurrence.times, finding.recurrence.most_seconds) == (len(moments), 2000.0)


@pytest.mark.parametrize("mode", ["offline", "online"])
@pytest.mark.parametrize("times", [20.0, 200.0])
@pytest.mark.parametrize("seed", range(4))
def test_bursts_every_one_to_three_hours_are_found(mode: str, times: float, seed: int) -> None:
    """A drive's housekeeping: irregular, of some windows, as high as each time was long."""
    chance = random.Random(seed)
    starts, at = [], 0
    while (at := at + chance.randint(HOUR, 3 * HOUR)) < 30 * HOUR:
        starts.append(at)
    moments = {start + index for start in starts for index in range(chance.randint(1, 4))}
    table = table_of(30 * HOUR, bursts(moments, p999=times), seed=seed)
    (finding,) = found_in(table, mode)
    assert (finding.kind, finding.onset) == ("spikes", starts[0] * WINDOW)
    assert finding.detected is not None
    assert finding.detected <= (starts[8] + 6) * WINDOW
    assert finding.recurrence is not None
    assert finding.recurrence.times == len(starts)
    assert finding.recurrence.is_from_start
    assert " to " in words_of(finding, table).partition("each, ")[2]


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_spikes_that_begin_later_do_not_count_as_there_from_the_start(mode: str) -> None:
    table = table_of(12 * HOUR, bursts(range(8 * HOUR, 12 * HOUR, 70)))
    (finding,) = found_in(table, mode)
    assert finding.onset == 8 * HOUR * WINDOW
    recurrence = finding.recurrence
    assert recurrence is not None
    assert not recurrence.is_from_start
    assert recurrence.next_expected == recurrence.last + 70 * WINDOW
    last = list(range(8 * HOUR, 12 * HOUR, 70))[-1] * WINDOW
    assert recurrence.last == pytest.approx(last, abs=2 * WINDOW)


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_both_quantiles_of_an_operation_are_one_finding(mode: str) -> None:
    table = table_of(6 * HOUR, bursts(range(63, 6 * HOUR, 62), p99=20.0))
    (finding,) = found_in(table, mode)
    assert finding.series == "p99"


def test_spikes_that_do_not_come_again_are_over() -> None:
    table = table_of(12 * HOUR, bursts(range(63, 2 * HOUR, 62)))
    (finding,) = found_in(table, "offline")
    last = max(range(63, 2 * HOUR, 62))
    assert finding.until == (last + 1) * WINDOW


def compaction(index: int) -> Sequence[float]:
    """On schedule, from the start, as high as a compaction makes it: the run's own."""
    return (1.0, 2.0, 4.0) if index % 60 in (30, 31, 32) else (1.0, 1.0, 1.0)


def heavy_tail(index: int) -> Sequence[float]:
    """Whatever its height, another one is nearly as high."""
    return (1.0, 1.0, math.exp(random.Random(index).expovariate(1.4)))


@pytest.mark.parametrize("mode", ["offline", "online"])
@pytest.mark.parametrize(
    ("factors", "rate"),
    [
        (compaction, lambda _: 50.0),
        (heavy_tail, lambda _: 50.0),
        (bursts([500, 4000]), lambda _: 50.0),
        (bursts(range(63, 12 * HOUR, 62)), lambda index: 500.0 if index % 62 == 1 else 50.0),
    ],
    ids=["compaction on schedule", "heavy tail", "two", "bursts of load"],
)
def test_scheduled_compactions_heavy_tails_two_spikes_and_load_bursts_are_no_finding(
    factors: Factors, rate: Callable[[int], float], mode: str
) -> None:
    assert found_in(table_of(12 * HOUR, factors, rate), mode) == []


@pytest.mark.parametrize("mode", ["offline", "online"])
@pytest.mark.parametrize("seed", range(6))
def test_slow_windows_that_come_by_chance_are_no_finding(seed: int, mode: str) -> None:
    """Three to nine in 30 hours, at random, of random heights, as on any shared machine."""
    chance = random.Random(seed)
    moments = {chance.randrange(200, 30 * HOUR): chance.uniform(5, 370) for _ in range(3 + seed)}

    def factors(index: int) -> Sequence[float]:
        factor = moments.get(index, 1.0)
        return (1.0, factor, factor)

    assert found_in(table_of(30 * HOUR, factors, seed=seed), mode) == []


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_as_many_as_no_shared_machine_has_are_found_although_irregular(mode: str) -> None:
    chance = random.Random(5)
    moments = sorted({chance.randrange(2 * HOUR, 12 * HOUR) for _ in range(30)})
    (finding,) = found_in(table_of(12 * HOUR, bursts(moments)), mode)
    assert finding.kind == "spikes"


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_spikes_of_a_load_that_is_higher_for_half_an_hour_are_its_own(mode: str) -> None:
    moments = [*range(2100, 2280, 9)]
    table = table_of(12 * HOUR, bursts(moments), lambda index: 80.0 if 2090 <= index < 2290 else 50.0)
    assert found_in(table, mode) == []


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_spikes_under_a_load_that_stays_higher_are_found(mode: str) -> None:
    moments = [*range(2 * HOUR, 12 * HOUR, 62)]
    (finding,) = found_in(table_of(12 * HOUR, bursts(moments), lambda index: 80.0 if index > HOUR else 50.0), mode)
    assert finding.recurrence is not None
    assert finding.recurrence.times > 0.9 * len(moments)


def test_latency_spikes_after_stalls_are_reported_only_as_stalls() -> None:
    rows = []
    for index in range(12 * HOUR):
        place = index % 400
        still, after = 390 <= place < 397, place == 397
        latency = "," if still else "70,70" if after else f"{0.03 + index % 7 * 1e-4:.4f},{0.09 + index % 5 * 1e-3:.4f}"
        rows.append(f"{index * WINDOW:g},{latency},{0 if still else 50 + index % 3}")
    table = read_table(["elapsed_seconds,p99,p999,operations_per_second", *rows])
    assert {finding.kind for finding in found_in(table, "offline")} == {"stall"}
