"""Generator of soaks from a fluid queue before a device that amplifies writes: latency follows from load and capacity.

The device is busy for the share `demand × amplification / capacity` of a window. Latencies are those of a server at
that utilisation, with a heavy tail; percentiles are order statistics of a window's operations, so that few operations
mean a noisy p99. Work that does not fit into a window waits for the next one.
"""

import numpy as np
from testkit.soaks.lognormal import EVENTS, LOOK_ALIKES
from testkit.soaks.noise import autoregressive, pulses, ramp
from testkit.soaks.soak import Column, Soak, Truth

from cliffwatch.analysis.finding import FindingKind, Notice

WINDOW_SECONDS = 10.0
HOUR = 360
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}


class _Plant:
    """Input of the queue, window by window: factors of demand and latency, and stalls of the client in seconds."""

    def __init__(self, random: np.random.Generator, count: int) -> None:
        self.random, self.count = random, count
        self.demand = np.exp(autoregressive(random, count, random.uniform(0.002, 0.02), random.uniform(1, 60)))
        self.busy = float(random.uniform(0.25, 0.7))
        #: Wanted latency as a factor of the healthy one; `_columns` turns it into a busier device.
        self.slower = np.ones(count)
        self.stall = np.zeros(count)
        self.client = np.ones(count)
        self.notices: list[Notice] = []
        self.truths: list[Truth] = []


def make(
    seed: int,
    events: tuple[str, ...] | None = None,
    healthy: tuple[str, ...] | None = None,
    hours: int | None = None,
) -> Soak:
    """Make a soak; drawn at random unless given: `events` of EVENTS, `healthy` of LOOK_ALIKES, `hours` 24, 30 or 36."""
    random = np.random.default_rng((seed, 2))
    count = (int(random.choice([24, 30, 36])) if hours is None else hours) * HOUR
    if events is None:
        events = tuple(random.choice(EVENTS, 1)) if random.random() < 0.6 else ()
    if healthy is None:
        healthy = tuple(name for name in LOOK_ALIKES if random.random() < 0.25)
    plant = _Plant(random, count)
    for name in healthy:
        _look_alike(plant, name)
    for name in events:
        _degrade(plant, name)
    columns = _columns(plant)
    times: Column = np.arange(count, dtype=np.float64) * WINDOW_SECONDS
    if "coarse_clock" in healthy:
        for name in QUANTILES:
            columns[name] = np.ceil(columns[name] * 1000) / 1000
    if "counter_reset" in healthy:
        for at in random.integers(0, count, int(random.integers(1, 5))):
            columns["device_write_latency"][at] = columns["operations_per_second"][at] = np.nan
    if "missing" in healthy:
        keep = random.random(count) > random.choice([0.0, 0.02])
        for at in random.integers(0, count, int(random.integers(1, 4))):
            keep[at : at + int(random.integers(5, 300))] = False
        times, columns = times[keep], {name: column[keep] for name, column in columns.items()}
    return Soak(
        seed, "queue", times, columns, WINDOW_SECONDS, tuple(sorted(plant.notices, key=lambda n: n.at)),
        tuple(plant.truths), healthy,
    )  # fmt: skip


def _columns(plant: _Plant) -> dict[str, Column]:
    random, count = plant.random, plant.count
    idle = (1 - plant.busy) / plant.slower  # share of idle time, chosen so that waiting grows by `slower`
    amplification = np.exp(autoregressive(random, count, random.uniform(0.003, 0.02), random.uniform(6, 120)))
    busy = plant.demand * (1 - idle) * amplification
    backlog = np.zeros(count)
    waiting = 0.0
    for index, share in enumerate((busy - 0.995).tolist()):
        waiting = min(max(0.0, waiting + share), 3.0)
        backlog[index] = waiting
    wait = 1 / np.maximum(1 - busy, 0.005)
    service = float(np.exp(random.uniform(np.log(5e-5), np.log(1e-3))))
    scale = float(np.exp(random.uniform(np.log(3), np.log(40)))) * service
    shape, alpha = random.uniform(0.7, 1.5), random.uniform(2.2, 5)
    samples = float(np.exp(random.uniform(np.log(400), np.log(2e5))))
    columns: dict[str, Column] = {}
    for name, quantile in QUANTILES.items():
        rank = min(samples - 1, np.ceil(quantile * samples))
        upper = 1 - random.beta(rank, samples - rank + 1, count)
        form = (-np.log(upper)) ** shape + 0.1 * (upper ** (-1 / alpha) - 1)
        columns[name] = plant.client * scale * wait * form + backlog * WINDOW_SECONDS * 0.5 + plant.stall
    device = service * wait * plant.client**0.5 * random.gamma(400, 1 / 400, count) + backlog * service * 50
    columns["device_write_latency"] = device
    columns["queue_depth"] = np.maximum(0.0, busy / np.maximum(1 - busy, 0.005)) * random.gamma(60, 1 / 60, count)
    rate = float(np.exp(random.uniform(np.log(200), np.log(1e5))))
    served = np.minimum(plant.demand, plant.demand / np.maximum(busy, 1e-3))
    columns["operations_per_second"] = rate * served * (1 - np.minimum(plant.stall / 8, 0.8))
    return columns


def _degrade(plant: _Plant, name: str) -> None:
    random, count = plant.random, plant.count
    onset = int(random.uniform(0.3, 0.85) * count)
    if name == "late":
        onset = count - int(random.uniform(0.4, 2.0) * HOUR)
    marks: dict[float, float] = {}
    kind = FindingKind.CLIFF
    if name == "cliff":
        ratio = float(np.exp(random.uniform(np.log(3), np.log(20))))
        plant.slower *= 1 + (ratio - 1) * ramp(count, onset, random.choice([1, random.uniform(1, 6)]))
    elif name == "late":
        ratio = float(random.uniform(1.9, 5))
        plant.slower *= 1 + (ratio - 1) * ramp(count, onset, 1)
    elif name == "step":
        ratio, kind = float(random.uniform(1.2, 1.4)), FindingKind.STEP
        plant.slower *= 1 + (ratio - 1) * ramp(count, onset, 1)
    elif name == "drift":
        onset, kind = int(random.uniform(0.25, 0.45) * count), FindingKind.DRIFT
        ratio, length = float(random.uniform(1.5, 2.5)), random.uniform(0.3, 0.5) * count
        plant.slower *= 1 + (ratio - 1) * ramp(count, onset, length)
        marks = {mark: (onset + length * (mark - 1) / (ratio - 1)) * WINDOW_SECONDS for mark in (1.3, 1.4)}
    else:
        kind, ratio = FindingKind.SPIKES, float(random.uniform(2.5, 10))
        gaps = random.uniform(9, 40) * random.gamma(20, 1 / 20, count)
        starts = onset + np.concatenate(([0.0], np.cumsum(gaps)))
        starts = starts[starts < count]
        plant.slower *= 1 + pulses(
            count, starts, random.integers(1, 4, len(starts)).astype(np.float64), np.full(len(starts), ratio)
        )
    plant.truths.append(Truth(name, kind, onset * WINDOW_SECONDS, ratio, marks))


def _look_alike(plant: _Plant, name: str) -> None:
    random, count = plant.random, plant.count
    time = np.arange(count)
    if name == "warm_up":
        plant.client *= 1 + random.uniform(0.3, 2) * np.exp(-time / (random.uniform(0.3, 1.3) * HOUR))
    elif name == "improving":
        plant.client *= np.linspace(1, random.uniform(0.5, 0.9), count)
    elif name == "compaction":
        period = random.uniform(20, 150) * 6
        starts = np.arange(random.uniform(0, period), count, period)
        lengths = random.uniform(2, 24) * random.uniform(0.6, 1.4, len(starts))
        plant.slower *= 1 + pulses(count, starts, lengths, np.full(len(starts), random.uniform(0.3, 3)))
    elif name == "restart":
        noticed = random.random() < 0.7
        for at in np.sort(random.uniform(0.05, 0.98, int(random.integers(1, 4)))) * count:
            length = random.uniform(3, 36)
            plant.stall += pulses(
                count, np.array([at]), np.array([length]), np.array([random.uniform(0.2, 6)]), "decay"
            )
            plant.demand[int(at + length) : int(at + 1.5 * length)] *= random.uniform(1.0, 1.25)
            if noticed:
                plant.notices.append(Notice(float(int(at)) * WINDOW_SECONDS, "broker restart"))
    elif name == "burst":
        starts = random.uniform(0.05, 0.97, int(random.integers(1, 4))) * count
        more = (1 - plant.busy * random.uniform(0.1, 0.5)) / plant.busy * 0.8 - 1
        lengths = random.uniform(18, 120, len(starts))
        plant.demand *= 1 + pulses(count, starts, lengths, np.full(len(starts), max(0.1, min(0.6, more))))
    elif name == "write_back":
        wave = np.sin(2 * np.pi * time / random.uniform(3, 36))
        plant.slower *= 1 + random.uniform(0.1, 0.4) * np.maximum(wave, 0)
    elif name == "diurnal":
        wave = np.sin(2 * np.pi * time / (24 * HOUR) + random.uniform(0, 2 * np.pi))
        if random.random() < 0.5:
            plant.client *= 1 + 0.1 * wave
        else:
            plant.demand *= 1 + 0.1 * (1 - plant.busy) / plant.busy * 0.9 * wave
