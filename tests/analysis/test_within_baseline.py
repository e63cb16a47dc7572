"""A small rise that never leaves what the baseline itself did is no cliff; a large one, or one that stays, is."""

import numpy as np
import pytest
from tests.analysis.drills import SERIES, START

from cliffwatch.analysis.cliff import counts_by_itself, is_by_size, is_within_baseline
from cliffwatch.analysis.finding import Baseline, Finding, FindingKind, Sample, Size
from cliffwatch.analysis.online.replay import replay
from cliffwatch.analysis.run_analysis import analysis

WARM_UP, BASELINE, RISE, WINDOWS = 15, 50, 65, 160


def noisy_drill(seed: int, times: float, until: int = WINDOWS, windows: int = WINDOWS) -> list[Sample]:
    """An emulated drive on a busy machine: 6 ms with windows from 3 to 70 ms, and the drive's own latency with them."""
    random = np.random.default_rng(seed)
    samples = []
    for index in range(windows):
        slow = times if RISE <= index < until else 1.0
        hiccup = float(np.exp(abs(random.normal(0, 1.0)))) if random.random() < 0.3 else 1.0
        values = {
            "append.p50": 0.002 * slow**0.5 * hiccup**0.5 * np.exp(random.normal(0, 0.1)),
            "append.p99": 0.0055 * slow * hiccup**1.6 * np.exp(random.normal(0, 0.18)),
            "device.write_latency": 0.001 * slow * hiccup * np.exp(random.normal(0, 0.1)),
            "operations_per_second": 500 * np.exp(random.normal(0, 0.01)),
        }
        phase = "warm_up" if index < WARM_UP else "baseline" if index < WARM_UP + BASELINE else "soak"
        samples.append(Sample(START + index, START + index + 1, values, phase))
    return samples


def _cliffs(seed: int, times: float) -> list[FindingKind]:
    samples = noisy_drill(seed, times)
    found = [*replay(SERIES, samples, [], 1.0), *analysis(SERIES, samples, [], 1.0)]
    return [one.kind for one in found if one.kind is FindingKind.CLIFF]


@pytest.mark.parametrize("seed", range(8))
def test_a_small_rise_within_the_baselines_own_band_is_no_cliff(seed: int) -> None:
    assert _cliffs(seed, times=1.8) == []


@pytest.mark.parametrize("seed", [1, 7])
def test_a_small_rise_that_is_over_yields_no_cliff_and_no_recovery(seed: int) -> None:
    assert analysis(SERIES, noisy_drill(seed, 2.0, RISE + 80, 260), [], 1.0) == []


@pytest.mark.parametrize("seed", [3, 6, 21, 25])
def test_slow_windows_all_through_a_run_are_no_spikes(seed: int) -> None:
    """Those just before the ones that are looked at are part of how often the run has them."""
    assert analysis(SERIES, noisy_drill(seed, 1.0, windows=260), [], 1.0) == []


@pytest.mark.parametrize("seed", range(8))
def test_a_large_rise_on_such_a_drive_is_one_live_and_in_the_report(seed: int) -> None:
    assert len(_cliffs(seed, times=30.0)) == 2


@pytest.mark.parametrize(
    ("worst", "ratio", "windows", "within"),
    [
        (0.023, 1.73, 95, True),
        (0.090, 1.73, 95, False),  # beyond the band for a while
        (0.060, 4.0, 95, False),  # by far more than the run wavers
        (0.023, 1.73, 180, False),  # it stays
    ],
)
def test_a_small_short_rise_inside_the_band_is_within_the_baseline(
    worst: float, ratio: float, windows: float, within: bool
) -> None:
    baseline = Baseline("append.p99", 0.00631, 0.0, 50.0, 0.00332, 0.0687)
    assert is_within_baseline(worst, ratio, baseline, windows) is within


@pytest.mark.parametrize(
    ("kind", "level", "detected", "reported"),
    [
        (FindingKind.STEP, 1.09, None, False),
        (FindingKind.STEP, 1.09, 100.0, True),  # an alert has said so
        (FindingKind.STEP, 1.2, None, True),
        (FindingKind.DRIFT, 1.09, None, True),
        (FindingKind.CLIFF, 1.2, 100.0, False),
    ],
)
def test_small_cliffs_and_small_unraised_steps_are_not_reported(
    kind: FindingKind, level: float, detected: float | None, reported: bool
) -> None:
    size = Size(Baseline("append.p99", 1.0, 0.0, 50.0, 0.9, 1.3), level, level)
    finding = Finding(kind, 60.0, "append.p99", 1.0, level, level, 0.9, detected=detected, size=size)
    assert is_by_size(finding, 50.0) is reported


@pytest.mark.parametrize(
    ("kind", "ratio", "confidence", "until", "counts"),
    [
        (FindingKind.CLIFF, 2.1, 0.8, None, True),  # twice the level for the hour to the end
        (FindingKind.CLIFF, 2.1, 0.8, 360.0, True),
        (FindingKind.CLIFF, 2.1, 0.8, 350.0, False),
        (FindingKind.CLIFF, 1.5, 0.8, None, False),
        (FindingKind.CLIFF, 3.1, 0.8, 350.0, False),
        (FindingKind.CLIFF, 3.1, 0.95, 350.0, True),
        (FindingKind.CLIFF, 3.1, 0.95, 20.0, False),
        (FindingKind.STEP, 9.0, 0.95, 350.0, False),
        (FindingKind.STEP, 1.9, 0.5, 360.0, True),
        (FindingKind.DRIFT, 1.9, 0.5, None, True),
        (FindingKind.RECOVERY, 1.9, 0.5, None, False),
    ],
)
def test_a_raised_change_counts_by_itself_if_it_is_large_and_lasts(
    kind: FindingKind, ratio: float, confidence: float, until: float | None, counts: bool
) -> None:
    raised = Finding(kind, 0.0, "append.p99", 1.0, ratio, ratio, confidence, detected=60.0, until=until)
    assert counts_by_itself(raised, 360.0, 1.0) is counts
