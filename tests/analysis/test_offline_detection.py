"""Offline analysis finds what was made, where it began, and nothing where nothing was wrong."""

import math
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from testkit.soaks import heavy, lognormal, queue
from testkit.soaks.lognormal import LOOK_ALIKES
from testkit.soaks.scoring import score
from testkit.soaks.soak import Soak
from tests.analysis.drills import SERIES, START, drill

from cliffwatch.analysis.finding import Finding, FindingKind, Notice, Sample
from cliffwatch.analysis.offline import onset
from cliffwatch.analysis.offline.changes import analyse
from cliffwatch.analysis.offline.view import view_of
from cliffwatch.analysis.online.replay import replay, with_detection
from cliffwatch.analysis.run_arrays import Array, whole_run

GENERATORS = pytest.mark.parametrize("generator", [lognormal, queue, heavy], ids=["lognormal", "queue", "heavy"])
MINUTE = 60.0
#: How far off the onset may be, in seconds.
ONSETS = {"cliff": MINUTE, "late": MINUTE, "step": MINUTE, "spikes": 5 * MINUTE, "drift": 240 * MINUTE}


def placed(client: Array, near: int) -> int:
    return onset.place(client, [], None, near, onset.REACH, 3 * onset.REACH)


def analysed(soak: Soak) -> list[Finding]:
    return analyse(soak.series(), soak.samples(), list(soak.notices), soak.window_seconds)


@GENERATORS
@pytest.mark.parametrize("event", list(ONSETS))
@pytest.mark.parametrize("seed", [3, 4])
def test_a_degradation_is_found_where_it_began(generator: ModuleType, event: str, seed: int) -> None:
    soak = generator.make(seed, (event,), (), 24)
    result = score(soak, analysed(soak), online=False)
    assert not result.missed
    assert not result.false_alarms + result.misnamed
    assert result.extra == []
    assert max(map(abs, result.onset_errors[event])) <= ONSETS[event]


@GENERATORS
@pytest.mark.parametrize("look_alike", LOOK_ALIKES)
def test_a_look_alike_of_a_degradation_is_no_offline_finding(generator: ModuleType, look_alike: str) -> None:
    assert analysed(generator.make(6, (), (look_alike,), 24)) == []


@GENERATORS
def test_all_look_alikes_together_are_no_degradation_either(generator: ModuleType) -> None:
    assert analysed(generator.make(7, (), LOOK_ALIKES, 24)) == []


@pytest.mark.parametrize("columns", [("p99",), ("p99", "device_write_latency"), ("p50", "p999")], ids=" ".join)
def test_any_columns_will_do_and_fewer_of_them_are_less_sure(columns: tuple[str, ...]) -> None:
    soak = lognormal.make(4, ("cliff",), (), 24)
    (finding,), (best,) = analysed(soak.only(*columns)), analysed(soak)
    assert abs(finding.onset - soak.truths[0].onset) <= MINUTE
    if "device_write_latency" not in columns:
        assert finding.confidence < best.confidence


@pytest.mark.parametrize("seed", range(4))
def test_a_drills_cliff_is_placed_within_three_windows(seed: int) -> None:
    (finding,) = analyse(SERIES, drill(seed), [], 1.0)
    assert finding.kind is FindingKind.CLIFF
    assert abs(finding.onset - (START + 180)) <= 3
    assert finding.corroborated_by == ("device.write_latency",)
    assert analyse(SERIES, drill(seed, cliff=None), [], 1.0) == []


def test_a_cliff_that_comes_back_ends_with_a_recovery() -> None:
    cliff, recovery = analyse(SERIES, drill(2, cliff=150, until=400, windows=600), [], 1.0)
    assert (cliff.kind, recovery.kind) == (FindingKind.CLIFF, FindingKind.RECOVERY)
    assert cliff.until == recovery.onset
    assert abs(recovery.onset - (START + 400)) <= 10


def test_a_finding_is_reported_with_the_moment_at_which_online_detection_raised_it() -> None:
    samples = drill(1)
    found = analyse(SERIES, samples, [], 1.0)
    assert [finding.detected for finding in found] == [None]
    (recorded,) = with_detection(found, replay(SERIES, samples, [], 1.0), 1.0)
    assert recorded.detected is not None
    assert 5 <= recorded.detected - recorded.onset <= 15


@pytest.mark.parametrize(
    ("changes", "onset"),
    [
        ({}, 90.0),
        ({"until": 115.0}, 121.0),
        ({"until": 130.0}, 90.0),
        ({"onset": -10.0, "detected": 0.0}, 121.0),
        ({"detected": 125.0, "onset": 120.0}, 121.0),
        ({"kind": FindingKind.DRIFT}, 121.0),
    ],
)
def test_a_cliff_has_the_onset_of_an_earlier_finding_that_lasted(changes: dict[str, Any], onset: float) -> None:
    raised = Finding(FindingKind.CLIFF, 90.0, "append.p99", 0.005, 0.5, 100.0, 0.9, detected=100.0)
    found = Finding(FindingKind.CLIFF, 121.0, "append.p99", 0.005, 10.0, 2000.0, 0.9)
    (recorded,) = with_detection([found], [replace(raised, **changes)], 1.0)
    assert recorded.onset == onset


def test_a_known_restart_is_left_out() -> None:
    soak = queue.make(11, (), ("restart",), 24)
    assert analyse(soak.series(), soak.samples(), [Notice(at.at, at.name) for at in soak.notices], 10.0) == []


def test_nothing_is_said_of_too_little() -> None:
    assert analyse(SERIES, drill(1)[:10], [], 1.0) == []
    assert analyse(SERIES, [], [], 1.0) == []


@GENERATORS
def test_an_excursion_that_recovers_within_45_minutes_is_no_level_change(generator: ModuleType) -> None:
    soak = generator.make(12, (), (), 24).only("p99", "device_write_latency")
    first = len(soak.times) // 2
    for column in soak.columns.values():
        column[first : first + 220] *= 2.5
    assert analysed(soak) == []
    for column in soak.columns.values():
        column[first + 220 :] *= 2.5
    (finding,) = analysed(soak)
    assert abs(finding.onset - float(soak.times[first])) <= MINUTE


@GENERATORS
@pytest.mark.parametrize("stages", [(1.6, 3.0), (3.0, 1.6), (1.6, 3.0, 1.6)], ids=str)
def test_an_excursion_that_recovers_in_stages_is_no_level_change(
    generator: ModuleType, stages: tuple[float, ...]
) -> None:
    soak = generator.make(12, (), (), 24).only("p99", "device_write_latency")
    first = len(soak.times) // 2
    for column in soak.columns.values():
        for index, factor in enumerate(stages):
            column[first + 60 * index :][:60] *= factor
    assert analysed(soak) == []


@pytest.mark.parametrize(
    ("height", "windows", "back", "higher"),
    [(math.log(2.2), 9, 0, 0.0), (math.log(4), 20, 2, 0.0), (math.log(3), 20, 2, math.log(1.25))],
)
def test_a_compaction_just_before_a_cliff_is_not_its_beginning(
    height: float, windows: int, back: int, higher: float
) -> None:
    """As slow as the run was all along is no evidence of a change; as slow as it had never been, or not for long
    enough to say, is some. `higher`: the last one than those before it."""
    random, at = np.random.default_rng(1), 3000
    client = random.normal(0.0, 0.1, at + 600)
    client[at:] += math.log(4)
    first = at - back - windows
    client[first : at - back] += height + higher
    compacting = client.copy()
    for begin in range(60, at - 120, 120):
        compacting[begin : begin + windows] += height
    short = compacting[at - 350 :]
    found = [placed(compacting, at), placed(client, at), at - 350 + placed(short, 350)]
    assert found == [at, first, first]


@pytest.mark.parametrize("seed", range(5))
def test_an_onset_is_within_the_run_also_where_all_since_was_as_slow_before(seed: int) -> None:
    random = np.random.default_rng(seed)
    client = random.normal(0.0, 0.05, 3000)
    is_slow = (np.arange(3000) // 30 % 4 == 0) & (np.arange(3000) < 2400)
    is_slow[-100:] = True
    client[is_slow] = random.normal(math.log(4), 0.6, int(is_slow.sum()))
    assert placed(client, 2900) < len(client)


@pytest.mark.parametrize(
    "soak", [lognormal.make(435), queue.make(108, ("cliff",), ("compaction",), 24)], ids=["touches", "spikes"]
)
def test_a_cliff_just_after_a_compaction_is_all_there_is(soak: Soak) -> None:
    (finding,) = analysed(soak)
    assert finding.kind is FindingKind.CLIFF
    assert abs(finding.onset - soak.truths[0].onset) <= MINUTE


def test_more_load_just_before_a_cliff_is_not_its_beginning() -> None:
    soak = lognormal.make(412)
    (finding,) = analysed(soak)
    assert abs(finding.onset - soak.truths[0].onset) <= MINUTE


@pytest.mark.parametrize(("generator", "seed"), [(lognormal, 214), (lognormal, 234), (heavy, 210)])
def test_a_step_in_noise_that_looks_like_a_ramp_is_found(generator: ModuleType, seed: int) -> None:
    """Where the hours around it look gradual, and the run shows no drift."""
    soak = generator.make(seed)
    (finding,) = analysed(soak)
    assert finding.kind is FindingKind.STEP
    assert abs(finding.onset - soak.truths[0].onset) <= 5 * MINUTE


@pytest.mark.parametrize(
    ("windows", "baseline", "rise", "judged_from"),
    [(1800, 99, 0, 96), (1800, 98, 0, 90), (1800, 96, 49, 42), (100, 40, 0, 40), (100, 61, 31, 31)],
)
def test_judging_begins_half_a_block_before_the_baselines_end(
    windows: int, baseline: int, rise: int, judged_from: int
) -> None:
    """A declared baseline ends with its phase, or where its level rose for good."""
    levels = [0.005 if not rise or index < rise else 0.05 for index in range(windows)]
    samples = [
        Sample(index, index + 1, {"append.p99": level}, "baseline" if index < baseline else "soak")
        for index, level in enumerate(levels)
    ]
    whole = whole_run(SERIES, samples, [], 1.0)
    assert whole is not None
    view = view_of(whole, "append.p99")
    assert view is not None
    assert view.skip_window == judged_from
