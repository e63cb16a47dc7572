"""Online detection raises what was made, in time, and nothing where nothing was wrong."""

import pickle
from dataclasses import replace
from itertools import pairwise
from types import ModuleType

import numpy as np
import pytest
from testkit.soaks import heavy, hidden, lognormal, queue
from testkit.soaks.lognormal import LOOK_ALIKES
from testkit.soaks.scoring import score
from testkit.soaks.soak import Soak
from tests.analysis.drills import BASELINE, SERIES, START, WARM_UP, drill

from cliffwatch.analysis.finding import Finding, FindingKind, Notice, Role, Sample, Series
from cliffwatch.analysis.online.detector import OnlineDetector
from cliffwatch.analysis.online.replay import replay
from cliffwatch.analysis.run_analysis import analysis
from cliffwatch.analysis.wording import sentence_of

GENERATORS = pytest.mark.parametrize("generator", [lognormal, queue, heavy], ids=["lognormal", "queue", "heavy"])
COLUMNS = ("p99", "device_write_latency", "operations_per_second")
HOURS = 14
MINUTE = 60.0
#: How late each may be raised, in seconds.
DELAYS = {"cliff": 3 * MINUTE, "late": 4 * MINUTE, "step": 30 * MINUTE, "spikes": 20 * MINUTE}


def raised(soak: Soak) -> list[Finding]:
    return replay(soak.series(), soak.samples(), list(soak.notices), soak.window_seconds)


@GENERATORS
@pytest.mark.parametrize("event", ["cliff", "late", "step", "spikes"])
@pytest.mark.parametrize("seed", [3, pytest.param(4, marks=pytest.mark.real(why="once more by chance"))])
def test_a_degradation_is_raised_in_time_as_what_it_is_and_nothing_besides(
    generator: ModuleType, event: str, seed: int
) -> None:
    soak = generator.make(seed, (event,), (), HOURS).only(*COLUMNS)
    result = score(soak, raised(soak), online=True)
    assert not result.missed
    assert not result.false_alarms + result.extra + result.misnamed
    assert max(result.delays[event]) <= DELAYS[event]


@GENERATORS
def test_a_slow_drift_is_raised_before_it_is_large(generator: ModuleType) -> None:
    soak = generator.make(5, ("drift",), (), 30).only(*COLUMNS)
    result = score(soak, raised(soak), online=True)
    assert not result.missed
    assert not result.false_alarms + result.extra + result.misnamed
    assert result.drift_marks[1.4] == [True]


@GENERATORS
@pytest.mark.parametrize("look_alike", LOOK_ALIKES)
def test_a_look_alike_of_a_degradation_raises_no_online_finding(generator: ModuleType, look_alike: str) -> None:
    soak = generator.make(6, (), (look_alike,), HOURS).only(*COLUMNS)
    assert raised(soak) == []


@pytest.mark.parametrize("seed", [20111, 20171], ids=["later", "longer"])
def test_a_compaction_that_is_later_or_longer_than_those_before_it_is_no_change(seed: int) -> None:
    soak = hidden.make(seed).only(*COLUMNS)
    assert "compaction" in soak.healthy
    assert not score(soak, raised(soak), online=True).false_alarms


@pytest.mark.parametrize("columns", [("p99",), ("p99", "device_write_latency"), ("p50", "p999"), COLUMNS], ids=" ".join)
def test_any_columns_will_do_and_fewer_of_them_are_less_sure(columns: tuple[str, ...]) -> None:
    soak = lognormal.make(4, ("cliff",), (), HOURS)
    (finding,) = raised(soak.only(*columns))
    (best,) = raised(soak.only(*COLUMNS))
    assert abs(finding.onset - soak.truths[0].onset) <= 2 * MINUTE
    if "device_write_latency" in columns:
        assert "device_write_latency" in finding.corroborated_by
    else:
        assert finding.confidence < best.confidence


def test_a_burst_of_load_is_distinguished_from_a_degradation_by_the_rate() -> None:
    soak = lognormal.make(8, (), ("burst",), HOURS)
    assert raised(soak.only(*COLUMNS)) == []
    # Without the rate the same latencies may as well be the device's.
    assert raised(soak.only("p99", "device_write_latency")) != []


def test_a_known_restart_explains_what_follows_it() -> None:
    samples = drill(1, cliff=150, until=185)
    assert replay(SERIES, samples, [Notice(START + 150, "broker_restart")], 1.0) == []
    assert replay(SERIES, samples, [], 1.0) != []


@pytest.mark.parametrize("seed", range(4))
def test_a_drills_cliff_is_raised_within_fifteen_windows(seed: int) -> None:
    (finding,) = replay(SERIES, drill(seed), [], 1.0)
    assert finding.kind is FindingKind.CLIFF
    assert finding.series == "append.p99"
    assert finding.detected is not None
    assert finding.detected - (START + 180) <= 15
    assert abs(finding.onset - (START + 180)) <= 3
    assert 5 < finding.ratio < 7
    assert replay(SERIES, drill(seed, cliff=None), [], 1.0) == []


def test_a_change_that_comes_back_is_over_and_a_recovery_is_reported() -> None:
    findings = replay(SERIES, drill(2, cliff=150, until=400, windows=600), [], 1.0)
    cliff, recovery = findings
    assert (cliff.kind, recovery.kind) == (FindingKind.CLIFF, FindingKind.RECOVERY)
    assert cliff.until is not None
    assert abs(cliff.until - (START + 400)) <= 40
    assert recovery.ratio == pytest.approx(1, abs=0.3)


def test_the_baseline_is_the_declared_phases_and_degradation_does_not_raise_it() -> None:
    detector = OnlineDetector(SERIES, 1.0)
    for sample in drill(3):
        detector.feed(sample, True)
    baseline = detector.baselines["append.p99"]
    assert baseline.level == pytest.approx(0.004, rel=0.15)
    assert (baseline.start, baseline.end) == (START + 30, START + 90)
    assert detector.ratios["append.p99", "fast"] == pytest.approx(6, rel=0.3)


def test_a_baseline_ends_where_the_level_rose_within_its_phase() -> None:
    detector = OnlineDetector(SERIES, 1.0)
    for sample in drill(3, cliff=70):
        detector.feed(sample, True)
    baseline = detector.baselines["append.p99"]
    assert baseline.level == pytest.approx(0.004, rel=0.15)
    assert baseline.start == START + 30
    assert baseline.end == pytest.approx(START + 70, abs=2)


def test_the_baseline_of_an_undeclared_run_is_neither_its_warm_ups_nor_its_degradations() -> None:
    soak = lognormal.make(9, ("cliff",), ("warm_up",), HOURS).only("p99")
    detector = OnlineDetector(soak.series(), soak.window_seconds)
    for sample in soak.samples():
        detector.feed(sample, True)
    healthy = soak.columns["p99"][(soak.times > 4 * 3600) & (soak.times < soak.truths[0].onset)]
    assert detector.baselines["p99"].level == pytest.approx(sorted(healthy)[len(healthy) // 2], rel=0.15)


def test_memory_does_not_grow_and_a_replay_gives_the_same() -> None:
    soak = lognormal.make(10, ("step",), ("compaction",), HOURS)
    samples = soak.samples()
    detector, again = (OnlineDetector(soak.series(), soak.window_seconds) for _ in range(2))
    sizes = []
    findings: list[list[Finding]] = [[], []]
    for index, sample in enumerate(samples):
        findings[0] += detector.feed(sample, True)
        if index in (2600, len(samples) - 1):
            sizes.append(len(pickle.dumps(detector)))
    for sample in samples:
        findings[1] += again.feed(sample, True)
    assert findings[0] == findings[1] != []
    assert sizes[1] < 1.15 * sizes[0]


def test_unmeasured_values_and_zeros_raise_no_finding_and_no_error() -> None:
    samples = [
        Sample(sample.start, sample.end, {} if index % 3 == 0 else {**sample.values, "unknown": 1.0}, sample.phase)
        for index, sample in enumerate(drill(4, cliff=None))
    ]
    assert replay(SERIES, samples, [], 1.0) == []
    zeros = [Sample(s.start, s.end, dict.fromkeys(s.values, 0.0), s.phase) for s in drill(4)]
    assert replay(SERIES, zeros, [], 1.0) == []
    assert all(earlier.end <= later.start for earlier, later in pairwise(samples))


def test_two_operations_that_fall_off_a_cliff_together_are_one_finding_that_names_both() -> None:
    random = np.random.default_rng(3)
    reads = Series("read.p99", Role.LATENCY, "read", 0.99)
    samples = []
    for index, sample in enumerate(drill(5)):
        slow = 4.0 if index >= 182 else 1.0
        values = {**sample.values, reads.name: 0.002 * slow * float(np.exp(random.normal(0, 0.1)))}
        samples.append(Sample(sample.start, sample.end, values, sample.phase))
    for order in ((*SERIES, reads), (reads, *SERIES)):
        (finding,) = replay(order, samples, [], 1.0)
        known = {one.name: one for one in order}
        (other,) = {"append.p99", "read.p99"} - {finding.series}
        assert finding.kind is FindingKind.CLIFF
        assert other in finding.corroborated_by
        operation = other.partition(".")[0]
        assert f"); so did the {operation} p99" in sentence_of(finding, known[finding.series], None, known)


def test_an_operation_that_stays_as_fast_as_it_was_is_not_named() -> None:
    reads = Series("read.p99", Role.LATENCY, "read", 0.99)
    samples = [
        Sample(one.start, one.end, {**one.values, reads.name: 0.002 + index % 7 * 1e-5}, one.phase)
        for index, one in enumerate(drill(5))
    ]
    (finding,) = replay((*SERIES, reads), samples, [], 1.0)
    assert finding.series == "append.p99"
    assert "read.p99" not in finding.corroborated_by


def noisy(seed: int, factor: float, device: bool, windows: int = 330, cliff: int = 150) -> list[Sample]:
    """A run whose baseline wavers by factors of several, for minutes at a time, around 34 ms."""
    random, wave, samples = np.random.default_rng(seed), 0.0, []
    for index in range(windows):
        wave = 0.9 * wave + random.normal(0, 0.35)
        values = {
            "append.p99": 0.034 * np.exp(wave) * (factor if index >= cliff else 1.0),
            "operations_per_second": 400 * np.exp(random.normal(0, 0.02)),
        }
        if device:
            values["device.write_latency"] = 0.0002 * np.exp(random.normal(0, 0.3)) * (20 if index >= cliff else 1)
        phase = "warm_up" if index < WARM_UP else "baseline" if index < WARM_UP + BASELINE else "soak"
        samples.append(Sample(START + index, START + index + 1, values, phase))
    return samples


@pytest.mark.parametrize("device", [True, False])
def test_a_hundredfold_rise_that_stays_is_a_finding_in_any_baseline(device: bool) -> None:
    series = [one for one in SERIES if one.role is not Role.DEVICE_LATENCY or device]
    for seed in range(6):
        found = analysis(series, noisy(seed, 100.0, device), [], 1.0)
        assert any(
            one.kind is FindingKind.CLIFF and abs(one.onset - START - 150) <= 30 and one.ratio > 20 for one in found
        ), seed


def falling_behind(seed: int, until: int = 200) -> list[Sample]:
    """A run as noisy whose device slows down within 40 windows, so that requests wait up to 8 s, until `until`."""
    samples = noisy(seed, 1.0, True, windows=200)
    for index, one in enumerate(samples[150:until]):
        share = min(index / 40, 1.0)
        values = dict(one.values)
        values["append.p99"] += 8.0 * share**2
        values["device.write_latency"] *= 300.0**share
        samples[150 + index] = replace(one, values=values)
    return samples


def test_a_noisy_run_that_falls_behind_is_raised_before_it_ends() -> None:
    for seed in range(12):
        (finding,) = replay(SERIES, falling_behind(seed), [], 1.0)
        assert finding.kind is FindingKind.CLIFF, seed
        assert "device.write_latency" in finding.corroborated_by, seed


def test_a_severe_rise_that_the_run_has_come_back_from_is_raised_once() -> None:
    samples = noisy(0, 1.0, True, windows=700)
    for begin in (150, 350, 550):
        for index, one in enumerate(samples[begin : begin + 30]):
            share = min(index / 4, 1.0)
            slower = {
                "append.p99": one.values["append.p99"] + 8.0 * share,
                "device.write_latency": one.values["device.write_latency"] * 300.0**share,
            }
            samples[begin + index] = replace(one, values=dict(one.values) | slower)
    found = [(one.kind, round(one.onset - START)) for one in replay(SERIES, samples, [], 1.0)]
    assert found == [("cliff", 151), ("recurring", 151)]


def test_a_noisy_run_without_a_rise_has_no_cliff() -> None:
    for seed in range(12):
        found = analysis(SERIES, noisy(seed, 1.0, False), [], 1.0)
        assert [one for one in found if one.kind is FindingKind.CLIFF] == [], seed
