"""Noise, pulses and ramps that the log-normal and the queue generator use."""

import numpy as np
from testkit.soaks.soak import Column


def autoregressive(random: np.random.Generator, count: int, sigma: float, windows: float) -> Column:
    """Autoregressive Gaussian noise: standard deviation `sigma`, correlation time `windows` (0: white noise)."""
    if windows <= 0:
        return random.normal(0, sigma, count)
    phi = float(np.exp(-1 / windows))
    steps = random.normal(0, sigma * np.sqrt(1 - phi * phi), count)
    out = np.empty(count)
    value = random.normal(0, sigma)
    for index, step in enumerate(steps.tolist()):
        value = phi * value + step
        out[index] = value
    return out


def pulses(count: int, starts: Column, lengths: Column, heights: Column, shape: str = "flat") -> Column:
    """Pulses, one per start, the highest where they overlap; with shape `decay` they fall off over their length."""
    out = np.zeros(count)
    for start, length, height in zip(starts.tolist(), lengths.tolist(), heights.tolist(), strict=True):
        first, width = int(start), max(1, int(length))
        last = min(count, first + width)
        if first >= count or last <= 0:
            continue
        form = np.ones(width) if shape == "flat" else np.exp(-np.arange(width) / max(1.0, width / 3))
        out[max(0, first) : last] = np.maximum(out[max(0, first) : last], height * form[max(0, -first) : last - first])
    return out


def ramp(count: int, start: float, windows: float) -> Column:
    """Linear ramp: 0 before `start`, 1 after `start + windows`."""
    return np.asarray(np.clip((np.arange(count) - start + 1) / max(1.0, windows), 0, 1) * (np.arange(count) >= start))
