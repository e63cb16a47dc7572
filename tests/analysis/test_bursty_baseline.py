"""A hundredfold rise that stays is a finding in any baseline, also in one with bursts nearly as high."""

import random

import pytest

from cliffwatch.analysis.finding import Finding, FindingKind, Role, Sample, Series
from cliffwatch.analysis.online.replay import replay
from cliffwatch.analysis.run_analysis import analysis

WINDOW_SECONDS = 10.0
HOUR_WINDOWS = 360
#: How long the rise lasts: 30 min, to the end of the run.
LASTS_WINDOWS = 180
SERIES = (Series("publish.p99", Role.LATENCY, "publish", 0.99), Series("device.write_latency", Role.DEVICE_LATENCY))


def bursts(windows: int, share: float, length: int, chance: random.Random) -> set[int]:
    """The windows of a baseline that are in a burst: so much of it, in bursts of up to three times that length."""
    found: set[int] = set()
    while len(found) < round(share * windows):
        at = chance.randrange(windows - 20)
        lasts = 1 if length == 1 else min(1 + round(chance.expovariate(1 / length)), 3 * length)
        found |= set(range(at, min(at + lasts, windows - 20)))
    return found


def soak(
    hours: float, baseline_hours: float, share: float, has_device: bool, length: int = 1, seed: int = 1
) -> list[Sample]:
    """A p99 of 34 ms with bursts of 2.3 to 3 s, then 3.4 s; `baseline_hours` 0: without declared phases."""
    chance = random.Random(seed)
    windows = round(hours * HOUR_WINDOWS)
    high = bursts(windows, share, length, chance)
    samples = []
    for index in range(windows + LASTS_WINDOWS):
        latency, device = 0.034 * chance.lognormvariate(0, 0.15), 0.0004 * chance.lognormvariate(0, 0.2)
        if index in high:
            latency, device = chance.uniform(2.3, 3.0), 0.012
        if index >= windows:
            latency, device = 3.4 * chance.lognormvariate(0, 0.1), 0.02 * chance.lognormvariate(0, 0.2)
        values = {"publish.p99": latency} | ({"device.write_latency": device} if has_device else {})
        start = index * WINDOW_SECONDS
        declared = "baseline" if index < baseline_hours * HOUR_WINDOWS else "soak"
        samples.append(Sample(start, start + WINDOW_SECONDS, values, declared if baseline_hours else None))
    return samples


def cliffs(samples: list[Sample], early_seconds: float = 120.0) -> list[list[Finding]]:
    """Those that last to the end and began where the rise did, or so much earlier: as the worker raises them, and as
    the report has them."""
    series = [one for one in SERIES if one.name in samples[0].values]
    onset = samples[-LASTS_WINDOWS].start
    return [
        [
            one
            for one in method(series, samples, [], WINDOW_SECONDS)
            if one.kind is FindingKind.CLIFF and one.until is None and -early_seconds <= one.onset - onset <= 120
        ]
        for method in (replay, analysis)
    ]


@pytest.mark.parametrize("has_device", [False, True], ids=["client alone", "with its drive"])
@pytest.mark.parametrize("share", [0.06, 0.08])
@pytest.mark.parametrize(("hours", "baseline_hours"), [(0.5, 0), (2, 0), (6, 0), (2, 1), (6, 1)])
def test_a_lasting_rise_is_a_cliff_in_a_baseline_of_bursts(
    hours: float, baseline_hours: float, share: float, has_device: bool
) -> None:
    for found in cliffs(soak(hours, baseline_hours, share, has_device)):
        (cliff,) = found
        assert 80 < cliff.ratio < 120


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_resolved_burst_finding_does_not_displace_the_later_cliff(seed: int) -> None:
    # A burst that the rise follows within minutes is its beginning.
    for found in cliffs(soak(0.5, 0.25, 0.06, has_device=True, length=8, seed=seed), early_seconds=600.0):
        (cliff,) = found
        assert cliff.ratio > 50
