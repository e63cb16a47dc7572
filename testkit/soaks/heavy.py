"""Soak generator: heavy-tailed noise around a wandering level; the device leads the client, moves by itself, or both.

A window's latency is a level times a gamma variate or the exponential of a Student variate; the level hops between
neighbouring values. Degradations and look-alikes have other shapes than in the other generators: cliffs that overshoot
or creep in, drifts that bend, spikes at random intervals, compaction with slopes, warm-ups that end abruptly. A device
may be ahead of its client by up to ten minutes, and some degradations end before the run does.
"""

from dataclasses import dataclass, field

import numpy as np
from testkit.soaks.soak import Column, Soak, Truth

from cliffwatch.analysis.finding import FindingKind, Notice

WINDOW_SECONDS = 10.0
HOUR = 360
MINUTE = 6
EVENTS = ("cliff", "late", "step", "drift", "spikes")
LOOK_ALIKES = (
    "warm_up", "improving", "compaction", "restart", "burst", "write_back", "missing", "coarse_clock", "diurnal",
    "counter_reset",
)  # fmt: skip
#: Per quantile: the exponent by which it follows changes of p99, and its level as a multiple of p99's.
_QUANTILES = {
    "p50": (0.5, 0.2), "p90": (0.8, 0.5), "p99": (1.0, 1.0), "p999": (1.0, 2.0), "p9999": (1.1, 6.0),
}  # fmt: skip


@dataclass
class _Course:
    """Effect of degradations and look-alikes per window: factors of latencies and rate; `extra` client latency in s."""

    random: np.random.Generator
    count: int
    client: Column
    device: Column
    rate: Column
    extra: Column
    notices: list[Notice] = field(default_factory=list)
    truths: list[Truth] = field(default_factory=list)
    unmeasured: list[slice] = field(default_factory=list)


def make(
    seed: int,
    events: tuple[str, ...] | None = None,
    healthy: tuple[str, ...] | None = None,
    hours: int | None = None,
) -> Soak:
    """Make a soak; drawn at random unless given: `events` of EVENTS, `healthy` of LOOK_ALIKES, `hours` 24 to 36."""
    random = np.random.default_rng((seed, 3))
    count = (int(random.integers(24, 37)) if hours is None else hours) * HOUR
    if events is None:
        events = (str(random.choice(EVENTS)),) if random.random() < 0.6 else ()
    if healthy is None:
        healthy = tuple(str(name) for name in random.permutation(LOOK_ALIKES)[: random.choice([0, 1, 1, 2, 3, 4])])
    ones = np.ones(count)
    course = _Course(random, count, ones, ones, ones, np.zeros(count))
    for name in sorted(healthy):
        if name in _HEALTHY:
            _HEALTHY[name](course)
    for name in events:
        _degrade(course, name)
    columns = _columns(course)
    times: Column = np.arange(count, dtype=np.float64) * WINDOW_SECONDS
    if "coarse_clock" in healthy:
        _coarsen(random, columns)
    if "counter_reset" in healthy:
        for at in random.integers(0, count, int(random.integers(1, 6))):
            columns["device_write_latency"][at] = random.choice([0.0, np.nan, 1e3])
            columns["operations_per_second"][at] = np.nan
    for hole in course.unmeasured:
        for column in columns.values():
            column[hole] = np.nan
    if "missing" in healthy:
        times, columns = _with_holes(random, times, columns)
    return Soak(
        seed, "heavy", times, columns, WINDOW_SECONDS, tuple(sorted(course.notices, key=lambda n: n.at)),
        tuple(course.truths), healthy,
    )  # fmt: skip


def _columns(course: _Course) -> dict[str, Column]:
    random, count = course.random, course.count
    level = float(np.exp(random.uniform(np.log(0.0015), np.log(0.3))))
    freedom = random.uniform(3, 30)
    width = float(np.exp(random.uniform(np.log(0.02), np.log(0.18))))
    hops = _hops(random, count, random.uniform(0.0, 0.05), random.uniform(10, 200) * MINUTE)
    memory = _smooth(random, count, random.uniform(0.0, 0.08), random.uniform(0.2, 15) * MINUTE)
    coupling = random.choice([0.0, random.uniform(0, 1)])
    is_gamma = random.random() < 0.5
    columns: dict[str, Column] = {}
    for name, (reach, part) in _QUANTILES.items():
        wide = width * {"p50": 0.4, "p90": 0.6, "p99": 1.0, "p999": 1.5, "p9999": 2.5}[name]
        if is_gamma:
            noise = random.gamma(1 / wide**2, wide**2, count)
        else:
            noise = np.asarray(np.exp(np.clip(random.standard_t(freedom, count) * wide, -2, 3)))
        shape = course.client**reach * np.exp(hops + memory)
        columns[name] = np.asarray(level * part * shape * noise + course.extra * reach)
    device = float(np.exp(random.uniform(np.log(2e-5), np.log(5e-3))))
    own = random.uniform(0.02, 0.12)
    wander = _hops(random, count, random.uniform(0.0, 0.04), random.uniform(10, 200) * MINUTE)
    shape = course.device * np.exp(coupling * (hops + memory) + wander)
    columns["device_write_latency"] = np.asarray(device * shape * random.gamma(1 / own**2, own**2, count))
    depth = random.uniform(2, 40) * course.device * course.rate
    columns["queue_depth"] = random.poisson(depth).astype(np.float64)
    swing = _smooth(random, count, random.uniform(0.001, 0.015), random.uniform(1, 30) * MINUTE)
    throttled = np.where(random.random() < 0.3, course.client**-0.1, 1.0)
    rate = float(np.exp(random.uniform(np.log(100), np.log(3e5))))
    columns["operations_per_second"] = np.asarray(np.round(rate * course.rate * throttled * np.exp(swing), 1))
    return columns


def _hops(random: np.random.Generator, count: int, size: float, length: float) -> Column:
    """Logarithm of a level that jumps by about `size`, every `length` windows on average, and reverts towards 0."""
    out, at, value = np.zeros(count), 0, 0.0
    while at < count:
        stay = max(1, int(random.exponential(length)))
        out[at : at + stay] = value
        value = 0.6 * value + float(np.clip(random.laplace(0, size / 2), -size, size))
        at += stay
    return out


def _smooth(random: np.random.Generator, count: int, size: float, length: float) -> Column:
    """Noise of standard deviation `size`, smoothed by a triangular kernel of `length` windows to each side."""
    width = max(1, int(length))
    kernel = np.convolve(np.ones(width), np.ones(width))
    noise = np.convolve(random.standard_normal(count + len(kernel) - 1), kernel, "valid")
    return np.asarray(size * noise / np.linalg.norm(kernel))


def _since(count: int, onset: int, windows: float) -> Column:
    """0 before `onset`, rising to 1 within `windows`."""
    return np.asarray(np.clip((np.arange(count) - onset + 1) / max(1.0, windows), 0, 1))


def _bumps(course: _Course, starts: Column, lengths: Column, height: float, slope: float) -> Column:
    """Trapezoidal pulses from 0 up to `height`; each slope takes the share `slope` of the pulse's length."""
    out = np.zeros(course.count)
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        width = max(1, int(length))
        x = (np.arange(width) + 1) / (width + 1)
        form = np.minimum(1.0, np.minimum(x, 1 - x) / slope) if slope else np.ones(width)
        # The first of a train may begin before the soak does.
        begin = int(start)
        first, last = max(0, begin), min(course.count, begin + width)
        if first < last:
            out[first:last] = np.maximum(out[first:last], height * form[first - begin : last - begin])
    return out


def _degrade(course: _Course, name: str) -> None:
    random, count = course.random, course.count
    onset = int(random.uniform(0.25, 0.85) * count)
    lead = int(random.choice([0, 0, random.uniform(1, 10) * MINUTE]))
    share = random.uniform(0.35, 1.1)
    since = np.arange(count) - onset
    marks: dict[float, float] = {}
    kind = FindingKind.CLIFF
    if name in ("cliff", "late"):
        if name == "late":
            onset = count - int(random.uniform(0.4, 2.0) * HOUR)
            since = np.arange(count) - onset
        ratio = float(np.exp(random.uniform(np.log(2.5), np.log(100 if name == "cliff" else 6))))
        form = _since(count, onset, random.choice([1, 1, 4]))
        ahead = _since(count, onset - lead, 1)
        if random.random() < 0.3:
            overshoot = 1 + random.uniform(0.2, 0.8) * np.exp(
                -np.clip(since, 0, None) / (random.uniform(1, 20) * MINUTE)
            )
            form = form * overshoot
        if name == "cliff" and random.random() < 0.25:
            stays = int(random.uniform(1.5, 5) * HOUR)
            form, ahead = form * (since < stays), ahead * (since < stays)
        course.client = course.client * ratio**form
        course.device = course.device * ratio ** (share * ahead)
    elif name == "step":
        ratio, kind = float(random.uniform(1.2, 1.4)), FindingKind.STEP
        course.client = course.client * ratio ** _since(count, onset, 1)
        course.device = course.device * ratio ** (random.uniform(0.6, 1.5) * _since(count, onset - lead, 1))
    elif name == "drift":
        onset, kind = int(random.uniform(0.2, 0.45) * count), FindingKind.DRIFT
        ratio, length = float(random.uniform(1.5, 3)), random.uniform(0.25, 0.55) * count
        bend = random.uniform(0.7, 1.5)
        form = _since(count, onset, length) ** bend
        course.client = course.client * ratio**form
        course.device = course.device * ratio ** (max(share, 0.5) * form)
        at = {mark: float((np.log(mark) / np.log(ratio)) ** (1 / bend)) for mark in (1.3, 1.4)}
        marks = {mark: (onset + length * part) * WINDOW_SECONDS for mark, part in at.items()}
    else:
        kind, ratio = FindingKind.SPIKES, float(random.uniform(2, 9))
        gaps = random.uniform(2, 9) * MINUTE * (0.4 + random.exponential(0.6, count))
        starts = onset + np.concatenate(([0.0], np.cumsum(gaps + 6)))
        starts = starts[starts < count]
        train = _bumps(course, starts, random.integers(1, 5, len(starts)).astype(np.float64), 1.0, 0.0)
        course.client = course.client * ratio**train
        course.device = course.device * ratio ** (share * train)
    course.truths.append(Truth(name, kind, onset * WINDOW_SECONDS, ratio, marks))


def _warm_up(course: _Course) -> None:
    random, time = course.random, np.arange(course.count)
    length = random.uniform(0.5, 4) * HOUR
    height = random.uniform(0.3, 2.5)
    form = [
        1.0 * (time < length),
        np.clip(1 - time / length, 0, 1),
        np.exp(-4 * time / length),
        np.clip(1 - (time / length) ** 3, 0, 1),
    ][int(random.integers(4))]
    course.client = course.client * (1 + height * form)
    course.device = course.device * (1 + random.choice([0.0, 0.5, 1.0]) * height * form)


def _improving(course: _Course) -> None:
    random, part = course.random, np.linspace(0, 1, course.count)
    steps = int(random.integers(2, 6))
    form = part if random.random() < 0.5 else np.floor(part * steps) / steps
    course.client = course.client * random.uniform(0.4, 0.9) ** form
    course.device = course.device * random.uniform(0.6, 1.0) ** form


def _compaction(course: _Course) -> None:
    random = course.random
    period = random.uniform(15, 180) * MINUTE
    starts = np.cumsum(period * random.normal(1, 0.08, int(course.count / period) + 3)) - random.uniform(0, period)
    lengths = random.uniform(0.3, 5) * MINUTE * random.lognormal(0, 0.25, len(starts))
    slope = float(random.choice([0.0, 0.3, 0.5]))
    course.client = course.client * (1 + _bumps(course, starts, lengths, random.uniform(0.2, 3), slope))
    course.device = course.device * (1 + _bumps(course, starts, lengths, random.uniform(0.1, 2.5), slope))


def _restart(course: _Course) -> None:
    random = course.random
    is_known = random.random() < 0.6
    for at in (random.uniform(0.04, 0.97, int(random.integers(1, 5))) * course.count).astype(int).tolist():
        down = int(random.uniform(0.2, 3) * MINUTE)
        fading = np.exp(-np.clip(np.arange(course.count) - at - down, 0, None) / (random.uniform(0.3, 2) * MINUTE))
        after = (np.arange(course.count) >= at) * fading
        course.extra = course.extra + random.uniform(0.1, 4) * np.where(after > 0.02, after, 0)
        course.rate = course.rate * np.where((np.arange(course.count) >= at) & (fading == 1), 0.3, 1.0)
        if random.random() < 0.5:
            course.unmeasured.append(slice(at, at + down))
        if is_known:
            course.notices.append(Notice(at * WINDOW_SECONDS, "broker restart"))


def _burst(course: _Course) -> None:
    random = course.random
    starts = random.uniform(0.04, 0.97, int(random.integers(1, 5))) * course.count
    lengths = random.uniform(2, 25, len(starts)) * MINUTE
    slope = float(random.choice([0.0, 0.1, 0.4]))
    course.rate = course.rate * (1 + _bumps(course, starts, lengths, random.uniform(0.15, 1), slope))
    course.client = course.client * (1 + _bumps(course, starts, lengths, random.uniform(0.3, 4), slope))
    course.device = course.device * (1 + _bumps(course, starts, lengths, random.uniform(0.0, 1), slope))


def _write_back(course: _Course) -> None:
    random = course.random
    phase = np.arange(course.count) / random.uniform(3, 45) + random.uniform(0, 1)
    form = phase % 1 if random.random() < 0.5 else (phase % 1 < random.uniform(0.2, 0.6)) * 1.0
    course.client = course.client * (1 + random.uniform(0.1, 0.5) * form)
    course.device = course.device * (1 + random.uniform(0.0, 0.5) * form)


def _diurnal(course: _Course) -> None:
    random = course.random
    angle = 2 * np.pi * (np.arange(course.count) / (24 * HOUR) + random.uniform(0, 1))
    wave = np.sin(angle + 0.4 * np.sin(angle))
    course.client = course.client * (1 + random.uniform(0.05, 0.1) * wave)
    course.rate = course.rate * (1 + random.choice([0.0, 0.1, 0.2]) * wave)
    course.device = course.device * (1 + random.choice([0.0, 0.05, 0.1]) * wave)


def _coarsen(random: np.random.Generator, columns: dict[str, Column]) -> None:
    # Round down, up or to the nearest millisecond.
    shift = [0.0, 1.0, 0.5][int(random.integers(3))]
    for name in _QUANTILES:
        columns[name] = np.asarray(np.floor(columns[name] * 1000 + shift) / 1000)


def _with_holes(
    random: np.random.Generator, times: Column, columns: dict[str, Column]
) -> tuple[Column, dict[str, Column]]:
    """Remove rows, and empty single fields, at random."""
    count = len(times)
    for column in columns.values():
        column[random.random(count) < random.choice([0.0, 0.02, 0.1])] = np.nan
    keep = np.ones(count, dtype=np.bool_)
    for at in random.integers(1, count - 1, int(random.integers(1, 6))):
        keep[at : at + int(random.uniform(0.5, 90) * MINUTE)] = False
    keep[[0, -1]] = True
    return times[keep], {name: column[keep] for name, column in columns.items()}


_HEALTHY = {
    "warm_up": _warm_up, "improving": _improving, "compaction": _compaction, "restart": _restart, "burst": _burst,
    "write_back": _write_back, "diurnal": _diurnal,
}  # fmt: skip
