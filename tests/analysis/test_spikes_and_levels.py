"""Spikes are one finding, and change neither the level between them nor what is reported of it."""

from types import ModuleType

import pytest
from testkit.soaks import lognormal, queue
from testkit.soaks.soak import Soak

from cliffwatch.analysis.finding import Finding, FindingKind
from cliffwatch.analysis.online.channel import Channel
from cliffwatch.analysis.online.replay import replay
from cliffwatch.analysis.online.run_detector import RunDetector
from cliffwatch.analysis.run_analysis import analysis
from cliffwatch.analysis.span_lengths import BLOCK
from cliffwatch.analysis.table import COLUMNS


def online(soak: Soak) -> list[Finding]:
    return replay(soak.series(), soak.samples(), list(soak.notices), soak.window_seconds)


def analysed(soak: Soak) -> list[Finding]:
    return analysis(soak.series(), soak.samples(), list(soak.notices), soak.window_seconds)


@pytest.mark.parametrize(("generator", "seed"), [(lognormal, 447), (queue, 438), (queue, 469), (queue, 476)])
def test_spikes_alone_are_no_step_and_no_drift(generator: ModuleType, seed: int) -> None:
    """Several in a minute raise that minute, and more of them in one hour than in another look like a change."""
    (found,) = online(generator.make(seed))
    assert found.kind is FindingKind.SPIKES


def test_two_quantiles_and_two_detectors_report_spikes_once() -> None:
    """One slow window hours before is none of them, although it was as slow."""
    soak = lognormal.make(426)
    (truth,) = soak.truths
    for (found,) in (online(soak), analysed(soak)):
        assert (found.kind, found.series) == (FindingKind.SPIKES, "p99")
        assert found.onset == pytest.approx(truth.onset, abs=60)


@pytest.mark.parametrize(("generator", "seed"), [(queue, 318), (queue, 476)])
def test_spikes_with_a_burst_of_load_between_them_are_one_finding_of_the_report(
    generator: ModuleType, seed: int
) -> None:
    """They fill whole minutes, and with the load's own rise look like a change of level that came back in stages."""
    (found,) = analysed(generator.make(seed))
    assert found.kind is FindingKind.SPIKES


def test_spikes_that_were_not_raised_have_the_size_of_their_peaks() -> None:
    """And not that of the windows between them."""
    (found,) = analysed(lognormal.make(9532))
    assert found.detected is None
    assert found.size is not None
    assert 3.0 < found.size.ratio < found.size.worst_ratio


def test_every_active_finding_has_been_reported() -> None:
    soak = lognormal.make(426)
    detector = RunDetector(soak.series(), soak.window_seconds)
    reported = set()
    for sample in soak.samples():
        reported |= {(each.series, each.onset) for each in detector.feed(sample)}
    assert {(each.series, each.onset) for each in detector.active} == reported


def test_spikes_are_left_out_of_a_block() -> None:
    channel = Channel(COLUMNS["p99"])
    for index in range(20 * BLOCK):
        channel.add(0.01, index * 10.0, index * 10.0 + 10, None)
    before = channel.last_blocks(1)[0]
    channel.spike_height = 0.5
    for index in range(BLOCK):
        channel.add(0.05 if index < BLOCK - 2 else 0.01, index * 10.0, index * 10.0 + 10, None)
    assert channel.last_blocks(1)[0] == pytest.approx(before)


@pytest.mark.parametrize(("generator", "seed"), [(lognormal, 493), (queue, 105)])
def test_spikes_that_begin_right_after_a_restart_are_dated_there(generator: ModuleType, seed: int) -> None:
    """What follows a restart is no evidence, until it goes on."""
    soak = generator.make(seed)
    (truth,) = soak.truths
    assert any(truth.onset - 600 < notice.at <= truth.onset for notice in soak.notices)
    (found,) = analysed(soak)
    assert found.onset == pytest.approx(truth.onset, abs=300)


def test_spikes_that_begin_in_a_cliff_and_outlast_it_are_part_of_it() -> None:
    assert FindingKind.SPIKES not in [finding.kind for finding in analysed(queue.make(664))]


def test_spikes_that_a_cliff_makes_noisier_are_part_of_it() -> None:
    """One slow window hours before the cliff, and two more that are as slow in the noise after it."""
    soak = lognormal.make(9438)
    for (found,) in (online(soak), analysed(soak)):
        assert found.kind is FindingKind.CLIFF
