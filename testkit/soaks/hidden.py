"""Soaks with a degradation that percentiles hide: a target that stalls, a load that fades, rare spikes.

The degradation is laid over healthy soaks of the other generators, with their look-alikes. The kind `compaction` has no
degradation, for comparison: only scheduled compaction from the start, which multiplies the soak's own noise.
"""

from dataclasses import replace

import numpy as np
from testkit.soaks import heavy, lognormal, queue
from testkit.soaks.soak import Soak, Truth

from cliffwatch.analysis.finding import FindingKind

GENERATORS = (lognormal, queue, heavy)
KINDS = ("stall", "fade", "rare", "compaction")
LATENCIES = ("p50", "p90", "p99", "p999", "p9999")
#: Look-alikes that are not used: they explain a change of load, or hide windows in which the degradation lies.
_LEFT_OUT = frozenset({"burst", "restart", "missing", "counter_reset", "warm_up"})
HOUR = 360


def make(seed: int, kind: str | None = None) -> Soak:
    """Make a soak; `kind` is one of `KINDS`, drawn when not given."""
    random = np.random.default_rng((seed, 4))
    generator = GENERATORS[seed % len(GENERATORS)]
    drawn = KINDS[int(random.integers(len(KINDS)))] if kind is None else kind
    healthy = tuple(name for name in generator.LOOK_ALIKES if name not in _LEFT_OUT and random.random() < 0.25)
    soak: Soak = generator.make(seed, (), tuple(sorted({*healthy, "compaction"}) if drawn == "compaction" else healthy))
    columns = {name: column.copy() for name, column in soak.columns.items()}
    laid = replace(soak, generator="hidden", columns=columns)
    truths = {"stall": _stall, "fade": _fade, "rare": _rare}[drawn](random, laid) if drawn != "compaction" else ()
    return replace(laid, truths=truths)


def _stall(random: np.random.Generator, soak: Soak) -> tuple[Truth, ...]:
    """Stall: nothing completes for half a minute to ten minutes; the next window's latencies equal the stall."""
    count = len(soak.times)
    first, windows = int(random.integers(2 * HOUR, count - HOUR)), int(random.integers(3, 60))
    for name in LATENCIES:
        soak.columns[name][first : first + windows] = np.nan
        soak.columns[name][first + windows] = windows * soak.window_seconds
    soak.columns["operations_per_second"][first : first + windows] = 0.0
    return (Truth("stall", FindingKind.STALL, float(soak.times[first]), 0.0),)


def _fade(random: np.random.Generator, soak: Soak) -> tuple[Truth, ...]:
    """Fade: within at most four hours the client's rate falls to a fraction (5 to 40 %), at the same latency."""
    count = len(soak.times)
    first, windows = int(random.integers(3 * HOUR, count - 8 * HOUR)), int(random.integers(1, 4 * HOUR))
    left = float(random.uniform(0.05, 0.4))
    course = np.interp(np.arange(count), [first, first + windows], [1.0, left])
    soak.columns["operations_per_second"] *= course
    onset = soak.times[int(np.argmax(course < 0.75))]
    return (Truth("fade", FindingKind.SHORTFALL, float(onset), left),)


def _rare(random: np.random.Generator, soak: Soak) -> tuple[Truth, ...]:
    """Rare spikes: one to three windows with p99.9 at 20 to 200 times its median, every ten minutes to three hours."""
    count = len(soak.times)
    least = int(random.choice([60, 180, 360]))
    at = int(random.integers(30, least)) if random.random() < 0.5 else int(random.integers(2 * HOUR, 6 * HOUR))
    height, first = float(random.uniform(20.0, 200.0)), float(soak.times[at])
    level = float(np.nanmedian(soak.columns["p999"]))
    while at < count - 4:
        windows = slice(at, at + int(random.integers(1, 4)))
        for name in ("p999", "p9999"):
            soak.columns[name][windows] = level * height * random.uniform(0.8, 1.25)
        at += int(random.integers(least, 3 * least))
    return (Truth("rare", FindingKind.SPIKES, first, height),)
