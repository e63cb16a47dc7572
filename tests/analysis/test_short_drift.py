"""A level that rises all along in a run of a few hours: too short to have a drift fitted to the whole of it."""

import numpy as np
import pytest

from cliffwatch.analysis.finding import FindingKind, Role, Sample, Series
from cliffwatch.analysis.online.replay import replay
from cliffwatch.analysis.run_analysis import analysis

SERIES = [Series("publish.p99", Role.LATENCY, operation="publish")]
WARM_UP, BASELINE, WINDOWS, WINDOW_SECONDS = 6, 30, 2000, 10.0
BASELINE_END = BASELINE * WINDOW_SECONDS


def soak(factor: float) -> list[Sample]:
    """5 h 33 min, from 2.8 ms to `factor` times that, in a straight line from the 34th minute on."""
    noise = np.random.default_rng(1)
    samples = []
    for index in range(WINDOWS):
        rise = 1 + (factor - 1) * max(0, index - 200) / (WINDOWS - 200)
        phase = "warm_up" if index < WARM_UP else "baseline" if index < BASELINE else "soak"
        start, value = WINDOW_SECONDS * index, 0.0028 * rise * float(np.exp(noise.normal(0, 0.05)))
        samples.append(Sample(start, start + WINDOW_SECONDS, {"publish.p99": value}, phase))
    return samples


@pytest.mark.parametrize("method", [analysis, replay], ids=["whole run", "live"])
def test_a_level_that_rises_for_hours_is_one_drift_since_the_baseline(method: object) -> None:
    assert callable(method)
    (found,) = method(SERIES, soak(5.5), [], WINDOW_SECONDS)
    assert (found.kind, found.until) == (FindingKind.DRIFT, None)
    # Not before what it is measured against was over, and no later than the rise.
    assert BASELINE_END <= found.onset <= 3000
    assert found.ratio == pytest.approx(5.2, rel=0.1)
    assert found.baseline == pytest.approx(0.0028, rel=0.05)


def test_a_daily_swing_s_hours_are_no_drift() -> None:
    assert analysis(SERIES, soak(1.1), [], WINDOW_SECONDS) == []
