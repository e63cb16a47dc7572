"""A rise that began in the declared baseline is healthy, and no part of the cliff after it."""

import numpy as np
import pytest
from tests.analysis.drills import SERIES, START

from cliffwatch.analysis.finding import Sample
from cliffwatch.analysis.online.replay import replay
from cliffwatch.analysis.run_analysis import analysis

WARM_UP, BASELINE, CLIFF, WINDOWS = 10, 50, 90, 170


def busy_drill(seed: int) -> list[Sample]:
    """An emulated drive that falls off a cliff, on a machine that is busy for some seconds again and again."""
    random = np.random.default_rng(seed)
    samples: list[Sample] = []
    left, times = 0, 1.0
    for index in range(WINDOWS):
        if left <= 0:
            left = int(random.integers(3, 40))
            times = float(np.exp(abs(random.normal(0, 1.2)))) if random.random() < 0.6 else 1.0
        left -= 1
        slow = 30.0 if index >= CLIFF else 1.0
        busy = times * float(np.exp(random.normal(0, 0.3)))
        values = {
            "append.p50": 0.002 * (slow * busy) ** 0.5,
            "append.p99": 0.0055 * slow * busy,
            "device.write_latency": 0.001 * slow * busy**0.3 * np.exp(random.normal(0, 0.1)),
            "operations_per_second": 500 * np.exp(random.normal(0, 0.01)),
        }
        phase = "warm_up" if index < WARM_UP else "baseline" if index < BASELINE else "soak"
        samples.append(Sample(START + index, START + index + 1, values, phase))
    return samples


@pytest.mark.parametrize("method", [replay, analysis], ids=["live", "whole run"])
@pytest.mark.parametrize("seed", [68, 89, 191])
def test_a_cliff_is_dated_after_the_baseline_and_sized_from_there(method: object, seed: int) -> None:
    assert callable(method)
    (cliff,) = method(SERIES, busy_drill(seed), [], 1.0)
    assert cliff.onset - START == pytest.approx(CLIFF, abs=2)
    assert cliff.size.ratio > 20


@pytest.mark.parametrize("method", [replay, analysis], ids=["live", "whole run"])
@pytest.mark.parametrize("seed", [134, 196])
def test_no_change_begins_in_the_baseline(method: object, seed: int) -> None:
    """Not even where the rise goes on after it."""
    assert callable(method)
    assert all(found.onset >= START + BASELINE for found in method(SERIES, busy_drill(seed), [], 1.0))
