"""What happens to a run that has degraded already: further changes, and noise that is none.

Degradations are laid over healthy soaks of the generators, whose own look-alikes stay in them.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from testkit.soaks import heavy, lognormal, queue
from testkit.soaks.noise import ramp
from testkit.soaks.soak import Column, Soak

from cliffwatch.analysis.finding import SUDDEN, Finding, FindingKind
from cliffwatch.analysis.online.detector import OnlineDetector
from cliffwatch.analysis.online.replay import replay
from cliffwatch.analysis.run_analysis import analysis

MINUTE, HOUR = 60.0, 3600.0
#: How much of a change each percentile shows, as in the generators, and the device.
SHARES = {"p50": 0.5, "p90": 0.8, "p99": 1.0, "p999": 1.1, "p9999": 1.2, "device_write_latency": 0.7}
Shape = Callable[[Column], Column]


def slowed(soak: Soak, *changes: tuple[float, float, float]) -> Soak:
    """The soak with these changes: from hour to hour, by which factor. A change whose second hour is past stays."""
    count = len(soak.times)
    rise = np.zeros(count)
    for begin, end, factor in changes:
        first, last = (int(np.searchsorted(soak.times, hour * HOUR)) for hour in (begin, end))
        rise += np.log(factor) * (ramp(count, first, 1) - (ramp(count, last, 1) if last < count else 0.0))
    columns = {name: column * np.exp(SHARES.get(name, 0.0) * rise) for name, column in soak.columns.items()}
    return replace(soak, columns=columns)


def online(soak: Soak) -> list[Finding]:
    return replay(soak.series(), soak.samples(), list(soak.notices), soak.window_seconds)


def reported(soak: Soak) -> list[Finding]:
    return analysis(soak.series(), soak.samples(), list(soak.notices), soak.window_seconds)


def hours_of(findings: Sequence[Finding]) -> list[tuple[FindingKind, float]]:
    return [(finding.kind, round(finding.onset / HOUR, 1)) for finding in findings]


@pytest.mark.parametrize(("generator", "seed"), [(lognormal, 101), (queue, 103), (heavy, 103)])
def test_a_cliff_in_two_stages_is_reported_from_its_first(generator: ModuleType, seed: int) -> None:
    """Without what was raised, the whole run shows a drift there that begins before both, or the last stage alone."""
    healthy = generator.make(seed, events=(), healthy=(), hours=24)
    found = [
        finding for finding in reported(slowed(healthy, (12, 99, 1.9), (12.8, 99, 3.5))) if finding.series == "p99"
    ]
    assert {finding.kind for finding in found} == {FindingKind.CLIFF}
    assert found[0].onset == pytest.approx(12 * HOUR, abs=5 * MINUTE)
    assert found[0].size is not None
    assert found[0].size.worst_ratio > 5
    assert hours_of(found[1:]) in ([], [(FindingKind.CLIFF, 12.8)])


def test_a_drift_with_a_cliff_at_its_end_stays_a_drift() -> None:
    healthy = lognormal.make(104, events=("drift",), healthy=(), hours=30)
    assert FindingKind.DRIFT in {finding.kind for finding in reported(slowed(healthy, (27, 99, 6.0)))}


@pytest.mark.parametrize(("generator", "seed"), [(heavy, 101), (heavy, 102), (queue, 102), (queue, 105)])
def test_compaction_after_a_step_is_as_well_known_as_before(generator: ModuleType, seed: int) -> None:
    healthy = generator.make(seed, events=(), healthy=("compaction",), hours=24)
    soak = slowed(healthy, (12, 99, 1.36))
    (raised,) = online(soak)
    assert (raised.kind, raised.until) == (FindingKind.STEP, None)
    assert raised.onset == pytest.approx(12 * HOUR, abs=5 * MINUTE)
    assert hours_of(reported(soak)) == [(FindingKind.STEP, 12.0)]


def test_a_further_cliff_that_ends_leaves_the_first_one_active() -> None:
    soak = slowed(lognormal.make(107, events=(), healthy=(), hours=24), (8, 99, 2.5), (12, 14, 4.0))
    detector = OnlineDetector(soak.series(), soak.window_seconds)
    active: dict[float, list[float]] = {}
    ended: list[Finding] = []
    for sample in soak.samples():
        ended += [each for each in detector.feed(sample, True) if each.until is not None or each.kind not in SUDDEN]
        if sample.end / HOUR in (11.0, 13.5, 20.0):
            active[sample.end / HOUR] = [round(each.onset / HOUR, 1) for each in detector.active]
    assert active == {11.0: [8.0], 13.5: [8.0, 12.0], 20.0: [8.0]}
    (further,) = ended
    assert (further.kind, round(further.onset / HOUR, 1)) == (FindingKind.CLIFF, 12.0)
    assert further.until == pytest.approx(14 * HOUR, abs=15 * MINUTE)
    (first,) = detector.active
    assert first.size is not None
    assert first.size.worst_ratio > 3 * first.size.ratio, "the first one's worst is that of the further one"


def test_a_further_cliff_has_to_last_while_little_is_known_of_the_new_level() -> None:
    healthy = lognormal.make(107, events=(), healthy=(), hours=24)
    brief = online(slowed(healthy, (8, 99, 2.5), (12, 12 + 5 / 60, 4.0)))
    assert hours_of(brief) == [(FindingKind.CLIFF, 8.0)]
    first, further = online(slowed(healthy, (8, 99, 2.5), (12, 99, 4.0)))
    assert first.detected is not None
    assert further.detected is not None
    assert first.detected - first.onset < 5 * MINUTE
    assert 6 * MINUTE < further.detected - further.onset < 10 * MINUTE


def test_spikes_that_go_on_are_one_train() -> None:
    """Hours of spikes are in the run's own spread, above which single windows stand out less and less."""
    trains = [finding for finding in online(queue.make(106)) if finding.kind is FindingKind.SPIKES]
    assert [train.until for train in trains] == [None]


@pytest.mark.parametrize(("generator", "seed"), [(lognormal, 149), (heavy, 108)])
def test_a_burst_of_load_after_a_cliff_is_no_further_cliff(generator: ModuleType, seed: int) -> None:
    """The device is as slow as the cliff made it, which is no evidence that it slowed down again."""
    assert [finding.kind for finding in online(generator.make(seed))] == [FindingKind.CLIFF]


@pytest.mark.parametrize(("generator", "seed"), [(lognormal, 103), (queue, 103), (heavy, 105)])
def test_a_further_rise_that_may_be_no_cliff_is_none(generator: ModuleType, seed: int) -> None:
    """A run that has degraded is noisy, and a step in it says little: only further cliffs are reported."""
    healthy = generator.make(seed, events=(), healthy=(), hours=26)
    assert hours_of(online(slowed(healthy, (8, 99, 2.5), (16, 99, 1.5)))) == [(FindingKind.CLIFF, 8.0)]
