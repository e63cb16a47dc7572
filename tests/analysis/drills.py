"""Runs of a few minutes with 1 s windows and declared phases, as a drill makes them."""

import numpy as np

from cliffwatch.analysis.finding import Role, Sample, Series

SERIES = (
    Series("append.p50", Role.LATENCY, "append", 0.5),
    Series("append.p99", Role.LATENCY, "append", 0.99),
    Series("device.write_latency", Role.DEVICE_LATENCY),
    Series("operations_per_second", Role.RATE),
)
START = 1_790_000_000.0
WARM_UP, BASELINE = 30, 60


def drill(seed: int, cliff: int | None = 180, until: int = 10_000, windows: int = 300) -> list[Sample]:
    """Latency is six times as high from the window `cliff` up to the window `until`."""
    random = np.random.default_rng(seed)
    samples = []
    for index in range(windows):
        slow = 6.0 if cliff is not None and cliff <= index < until else 1.0
        cold = 1 + 3 * np.exp(-index / 8)
        values = {
            "append.p50": 0.001 * slow**0.5 * cold * np.exp(random.normal(0, 0.05)),
            "append.p99": 0.004 * slow * cold * np.exp(random.normal(0, 0.15)),
            "device.write_latency": 0.0001 * slow**0.8 * np.exp(random.normal(0, 0.08)),
            "operations_per_second": 2000 * np.exp(random.normal(0, 0.01)),
        }
        phase = "warm_up" if index < WARM_UP else "baseline" if index < WARM_UP + BASELINE else "soak"
        samples.append(Sample(START + index, START + index + 1, values, phase))
    return samples
