"""A small rise that never leaves what the baseline itself did is no cliff; a large one, or one that stays, is."""

import numpy as np
import pytest
from tests.analysis.drills import SERIES, START

from cliffwatch.analysis.cliff import is_within_baseline
from cliffwatch.analysis.finding import Baseline, FindingKind, Sample
from cliffwatch.analysis.online.replay import replay
from cliffwatch.analysis.run_analysis import analysis

WARM_UP, BASELINE, RISE, WINDOWS = 15, 50, 65, 160


def noisy_drill(seed: int, times: float) -> list[Sample]:
    """An emulated drive on a busy machine: 6 ms with windows from 3 to 70 ms, and the drive's own latency with them."""
    random = np.random.default_rng(seed)
    samples = []
    for index in range(WINDOWS):
        slow = times if index >= RISE else 1.0
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
def test_what_is_within_the_baseline(worst: float, ratio: float, windows: float, within: bool) -> None:
    baseline = Baseline("append.p99", 0.00631, 0.0, 50.0, 0.00332, 0.0687)
    assert is_within_baseline(worst, ratio, baseline, windows) is within
