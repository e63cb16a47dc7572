"""Soak generator: autocorrelated log-normal noise around a level, a device that leads the client, and look-alikes."""

from dataclasses import dataclass, field

import numpy as np
from testkit.soaks.noise import autoregressive, pulses, ramp
from testkit.soaks.soak import Column, Soak, Truth

from cliffwatch.analysis.finding import FindingKind, Notice

WINDOW_SECONDS = 10.0
HOUR = 360
EVENTS = ("cliff", "late", "step", "drift", "spikes")
LOOK_ALIKES = (
    "warm_up", "improving", "compaction", "restart", "burst", "write_back", "missing", "coarse_clock", "diurnal",
    "counter_reset",
)  # fmt: skip


@dataclass
class _Draft:
    """Effect of degradations and look-alikes per window: log factors of client latency, device latency and rate."""

    random: np.random.Generator
    count: int
    client: Column
    device: Column
    rate: Column
    notices: list[Notice] = field(default_factory=list)
    truths: list[Truth] = field(default_factory=list)


def make(
    seed: int,
    events: tuple[str, ...] | None = None,
    healthy: tuple[str, ...] | None = None,
    hours: int | None = None,
) -> Soak:
    """Make a soak; drawn at random unless given: `events` of EVENTS, `healthy` of LOOK_ALIKES, `hours` 24, 30 or 36."""
    random = np.random.default_rng((seed, 1))
    count = (int(random.choice([24, 30, 36])) if hours is None else hours) * HOUR
    if events is None:
        events = tuple(random.choice(EVENTS, 1)) if random.random() < 0.6 else ()
    if healthy is None:
        healthy = tuple(name for name in LOOK_ALIKES if random.random() < 0.25)
    draft = _Draft(random, count, np.zeros(count), np.zeros(count), np.zeros(count))
    for name in healthy:
        if name in _HEALTHY:
            _HEALTHY[name](draft)
    for name in events:
        _degrade(draft, name)
    times: Column = np.arange(count, dtype=np.float64) * WINDOW_SECONDS
    times, columns = _measured(random, times, _columns(draft), healthy)
    return Soak(
        seed, "lognormal", times, columns, WINDOW_SECONDS, tuple(sorted(draft.notices, key=lambda n: n.at)),
        tuple(draft.truths), healthy,
    )  # fmt: skip


def _measured(
    random: np.random.Generator, times: Column, columns: dict[str, Column], healthy: tuple[str, ...]
) -> tuple[Column, dict[str, Column]]:
    """Apply to the series what `healthy` names of these: a coarse clock, counter resets, missing samples."""
    count = len(times)
    if "coarse_clock" in healthy:
        for name in ("p50", "p90", "p99", "p999", "p9999"):
            columns[name] = np.maximum(np.round(columns[name], 3), 0.0 if random.random() < 0.5 else 0.001)
    if "counter_reset" in healthy:
        for at in random.integers(0, count, int(random.integers(1, 5))):
            for name in ("device_write_latency", "operations_per_second"):
                columns[name][at] = random.choice([0.0, np.nan, 50 * columns[name][at]])
    if "missing" in healthy:
        keep = random.random(count) > random.choice([0.0, 0.01, 0.05])
        for at in random.integers(0, count, int(random.integers(1, 4))):
            keep[at : at + int(random.integers(10, 360))] = False
        keep[[0, -1]] = True
        times, columns = times[keep], {name: column[keep] for name, column in columns.items()}
    return times, columns


def _columns(draft: _Draft) -> dict[str, Column]:
    random, count = draft.random, draft.count
    level = float(np.exp(random.uniform(np.log(0.003), np.log(0.2))))
    shared = autoregressive(random, count, random.uniform(0.02, 0.09), random.uniform(3, 60))
    slow = autoregressive(random, count, random.uniform(0.0, 0.02), random.uniform(180, 720))
    white = random.uniform(0.03, 0.2)
    tail = random.choice([0.0, 0.002, 0.01]) if random.random() < 0.5 else 0.0
    columns: dict[str, Column] = {}
    ratios = {"p50": 0.15, "p90": 0.45, "p99": 1.0, "p999": 2.5, "p9999": 5.0}
    for name, scale in ratios.items():
        widths = {"p50": 0.3, "p90": 0.5, "p99": 1.0, "p999": 1.6, "p9999": 2.5}
        reach = {"p50": 0.4, "p90": 0.8, "p99": 1.0, "p999": 1.1, "p9999": 1.2}
        own = random.normal(0, white * widths[name], count)
        outliers = (random.random(count) < tail) * random.exponential(0.8, count)
        columns[name] = level * scale * np.exp(shared + slow + own + outliers + reach[name] * draft.client)
    noise = autoregressive(random, count, random.uniform(0.02, 0.1), random.uniform(1, 30))
    coupling = random.uniform(0, 0.8)
    device = float(np.exp(random.uniform(np.log(5e-5), np.log(2e-3))))
    columns["device_write_latency"] = device * np.exp(noise + coupling * shared + draft.device)
    depth = random.uniform(0.5, 16)
    columns["queue_depth"] = depth * np.exp(random.normal(0, 0.15, count) + 0.8 * draft.device + 0.5 * draft.rate)
    rate = float(np.exp(random.uniform(np.log(200), np.log(2e5))))
    columns["operations_per_second"] = rate * np.exp(
        autoregressive(random, count, random.uniform(0.002, 0.02), 5) + draft.rate
    )
    return columns


def _degrade(draft: _Draft, name: str) -> None:
    random, count = draft.random, draft.count
    onset = int(random.uniform(0.3, 0.85) * count)
    lead = int(random.choice([0, 0, int(random.integers(0, 12))]))
    share = random.uniform(0.4, 1.0)
    if name == "late":
        onset = count - int(random.uniform(0.4, 2.0) * HOUR)
    if name in ("cliff", "late"):
        ratio = float(np.exp(random.uniform(np.log(3), np.log(60)) if name == "cliff" else random.uniform(0.7, 1.6)))
        windows = random.choice([1, 1, random.uniform(1, 6)])
        draft.client += np.log(ratio) * ramp(count, onset, windows)
        draft.device += share * np.log(ratio) * ramp(count, onset - lead, windows)
        kind = FindingKind.CLIFF
    elif name == "step":
        ratio = float(random.uniform(1.2, 1.4))
        draft.client += np.log(ratio) * ramp(count, onset, 1)
        draft.device += random.uniform(0.6, 1.5) * np.log(ratio) * ramp(count, onset - lead, 1)
        kind = FindingKind.STEP
    elif name == "drift":
        onset = int(random.uniform(0.25, 0.45) * count)
        ratio = float(random.uniform(1.5, 2.5))
        length = random.uniform(0.3, 0.5) * count
        draft.client += np.log(1 + (ratio - 1) * ramp(count, onset, length))
        draft.device += random.uniform(0.6, 1.2) * np.log(1 + (ratio - 1) * ramp(count, onset, length))
        at = {mark: (onset + length * (mark - 1) / (ratio - 1)) * WINDOW_SECONDS for mark in (1.3, 1.4)}
        draft.truths.append(Truth(name, FindingKind.DRIFT, onset * WINDOW_SECONDS, ratio, at))
        return
    else:
        period = random.uniform(9, 40)
        starts = np.arange(onset, count, period) + random.normal(0, period * random.uniform(0, 0.2), 1)
        starts = np.maximum(starts + random.normal(0, period * 0.1, len(starts)), onset)
        starts[0] = onset
        ratio = float(np.exp(random.uniform(np.log(2.5), np.log(20))))
        lengths = random.integers(1, 4, len(starts)).astype(float)
        heights = np.log(ratio) * random.uniform(0.8, 1.2, len(starts))
        train = pulses(count, starts, lengths, heights)
        draft.client += train
        draft.device += share * train
        kind = FindingKind.SPIKES
    draft.truths.append(Truth(name, kind, onset * WINDOW_SECONDS, ratio))


def _warm_up(draft: _Draft) -> None:
    hours = draft.random.uniform(0.5, 4)
    decay = np.exp(-np.arange(draft.count) / (hours * HOUR / 3)) * np.log(draft.random.uniform(1.5, 4))
    draft.client += decay
    draft.device += decay * draft.random.uniform(0, 0.8)


def _improving(draft: _Draft) -> None:
    draft.client += np.log(draft.random.uniform(0.5, 0.85)) * np.linspace(0, 1, draft.count)


def _compaction(draft: _Draft) -> None:
    random = draft.random
    period = random.uniform(20, 120) * 6
    starts = np.arange(random.uniform(0, period), draft.count, period)
    starts = starts + random.normal(0, period * random.uniform(0, 0.15), len(starts))
    lengths = random.uniform(0.5, 1.3, len(starts)) * random.uniform(2, 24)
    heights = np.log(random.uniform(1.4, 5)) * random.uniform(0.7, 1.2, len(starts))
    train = pulses(draft.count, starts, lengths, heights, str(random.choice(["flat", "decay"])))
    draft.client += train
    draft.device += train * random.uniform(0.1, 0.8)


def _restart(draft: _Draft) -> None:
    random = draft.random
    noticed = random.random() < 0.7
    for at in np.sort(random.uniform(0.05, 0.98, int(random.integers(1, 4)))) * draft.count:
        length = random.uniform(4, 48)
        one = pulses(draft.count, np.array([at]), np.array([length]), np.array([1.0]), "decay")
        draft.client += one * np.log(random.uniform(3, 30))
        draft.rate -= one * random.uniform(0.1, 0.9)
        draft.device += one * random.uniform(-0.3, 0.3)
        if noticed:
            draft.notices.append(Notice(float(int(at)) * WINDOW_SECONDS, "broker_restart"))


def _burst(draft: _Draft) -> None:
    random = draft.random
    starts = random.uniform(0.05, 0.97, int(random.integers(1, 4))) * draft.count
    train = pulses(draft.count, starts, random.uniform(18, 120, len(starts)), np.ones(len(starts)))
    draft.client += train * np.log(random.uniform(1.4, 4))
    draft.device += train * np.log(random.uniform(1.05, 1.6))
    draft.rate += train * np.log(random.uniform(1.15, 1.8))


def _write_back(draft: _Draft) -> None:
    random = draft.random
    wave = np.sin(2 * np.pi * np.arange(draft.count) / random.uniform(3, 36) + random.uniform(0, 6))
    wave = np.maximum(wave, 0) if random.random() < 0.5 else wave
    draft.client += wave * random.uniform(0.1, 0.4)
    draft.device += wave * random.uniform(0.05, 0.4)


def _diurnal(draft: _Draft) -> None:
    random = draft.random
    wave = np.sin(2 * np.pi * np.arange(draft.count) / (24 * HOUR) + random.uniform(0, 2 * np.pi))
    draft.client += np.log(1 + 0.1 * wave)
    draft.rate += np.log(1 + random.choice([0.0, 0.05, 0.1]) * wave)
    draft.device += np.log(1 + random.choice([0.0, 0.05]) * wave)


_HEALTHY = {
    "warm_up": _warm_up, "improving": _improving, "compaction": _compaction, "restart": _restart, "burst": _burst,
    "write_back": _write_back, "diurnal": _diurnal,
}  # fmt: skip
