"""The measure that detection is held to: each thing that can be wrong with findings is seen."""

from dataclasses import replace

import numpy as np
import pytest
from testkit.soaks.scoring import Score, score
from testkit.soaks.soak import Soak, Truth

from cliffwatch.analysis.finding import Finding, FindingKind

HOUR = 3600.0
ONSET = 6 * HOUR
SOAK = Soak(
    seed=1,
    generator="by hand",
    times=np.arange(0.0, 12 * HOUR, 10.0),
    columns={},
    window_seconds=10.0,
    truths=(Truth("cliff", FindingKind.CLIFF, ONSET, 10.0),),
)
RIGHT = Finding(FindingKind.CLIFF, ONSET, "p99", 0.01, 0.1, 10.0, 0.9, detected=ONSET + 60)


def scored(*findings: Finding, online: bool = True) -> Score:
    return score(SOAK, findings, online)


def test_the_right_finding_is_all_that_is_wanted() -> None:
    found = scored(RIGHT)
    assert (found.missed, found.false_alarms, found.extra, found.misnamed) == ([], [], [], [])
    assert found.delays == {"cliff": [60.0]}


def test_a_cliff_that_compaction_hides_is_counted_apart() -> None:
    compacting = replace(SOAK, healthy=("burst", "compaction"))
    assert score(compacting, [RIGHT], online=True).delays == {"cliff, under compaction": [60.0]}
    step = replace(compacting, truths=(Truth("step", FindingKind.STEP, ONSET, 1.3),))
    assert score(step, [RIGHT], online=True).delays == {"step": [60.0]}


@pytest.mark.parametrize("online", [True, False])
def test_a_finding_before_the_onset_is_a_false_alarm(online: bool) -> None:
    early = replace(RIGHT, onset=ONSET - 2 * HOUR, detected=ONSET - 2 * HOUR)
    assert scored(early, RIGHT, online=online).false_alarms == [early]


@pytest.mark.parametrize("online", [True, False])
def test_a_second_finding_of_one_degradation_is_extra(online: bool) -> None:
    again = replace(RIGHT, onset=ONSET + 3 * HOUR, detected=ONSET + 3 * HOUR)
    assert scored(RIGHT, again, online=online).extra == [again]


@pytest.mark.parametrize("online", [True, False])
def test_a_finding_of_another_kind_is_misnamed(online: bool) -> None:
    drift = replace(RIGHT, kind=FindingKind.DRIFT)
    assert scored(drift, online=online).misnamed == [drift]


def test_no_finding_is_a_miss() -> None:
    assert [truth.name for truth in scored().missed] == ["cliff"]


def test_a_degradation_in_a_gap_begins_with_the_first_window_after_it() -> None:
    measured = np.where((SOAK.times >= ONSET - HOUR) & (SOAK.times < ONSET + HOUR), np.nan, 0.01)
    found = score(replace(SOAK, columns={"p99": measured}), [replace(RIGHT, detected=ONSET + HOUR + 60)], online=True)
    assert found.delays == {"cliff": [60.0]}
