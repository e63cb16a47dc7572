"""Drift: an hour or two against the baseline, and against the hours before, by more than a day's swing explains."""

import math
from dataclasses import dataclass

from cliffwatch.detect.channel import Channel
from cliffwatch.detect.spans import HOUR_BLOCKS, log_ratio
from cliffwatch.detect.spread import middle
from cliffwatch.detect.surroundings import Surroundings

#: A daily swing, from its middle, that is healthy.
SWING = 0.1
#: Drift is told above this ratio to the baseline, which a daily swing does not reach, plus the run's own noise.
RATIO_MINIMUM = 1.235
SIGNIFICANCE = 2.0
#: Or when it rose within hours by more than a daily swing does, plus this and the run's own noise.
MARGIN = 0.03
SIGNIFICANCE_BEFORE = 3.0
#: By how much more when the device is measured and has not risen.
CONTRADICTED_RATIO = 1.15
#: Blocks whose median is the level now, and hours' worth before it that it is compared with (0: the baseline).
SPANS = ((60, 0), (120, 0), (60, 2), (60, 3), (60, 4), (60, 6), (60, 8))
#: Which part of the noise's share a device that rises about as much takes away.
_TOGETHER, _TOGETHER_SHARE = 0.4, 0.6
#: The noise of an hour is inferred from that of a third of it: noise with memory averages out more slowly than without.
_INFERRED = 1.3
_INFERRED_FROM = 20


@dataclass(frozen=True, slots=True)
class Drift:
    """How far the level has risen over the baseline (a logarithm), since how many blocks, and which devices rose."""

    rise: float
    blocks: int
    devices: tuple[str, ...]


def find_drift(channel: Channel, base: float, sigma: float | None, surroundings: Surroundings) -> Drift | None:
    """`base`: the level (logarithm) that drift is told against; `sigma`: the spread of 20 blocks' statistic."""
    if sigma is None:
        return None
    for span, hours in SPANS:
        blocks = channel.last_blocks(span)
        if len(blocks) < span:
            return None
        noise = _INFERRED * sigma * math.pow(_INFERRED_FROM / span, 0.5)
        now = middle(blocks)
        rise, needed = now - base, log_ratio(RATIO_MINIMUM) + SIGNIFICANCE * noise
        if hours:
            before = channel.last_blocks(2 * HOUR_BLOCKS, skip=hours * HOUR_BLOCKS - HOUR_BLOCKS // 2)
            if len(before) < HOUR_BLOCKS:
                continue
            rise = now - max(base, middle(before))
            swing = 2 * SWING * math.sin(math.pi * hours / 24)
            needed = log_ratio(1 + swing) + MARGIN + SIGNIFICANCE_BEFORE * noise
        devices = surroundings.risen(span, rise)
        # Two that rise together are less likely to be noise than one.
        needed -= _TOGETHER * SIGNIFICANCE * noise if surroundings.risen(span, rise, _TOGETHER_SHARE) else 0.0
        if rise < needed:
            continue
        if devices or not surroundings.devices or rise >= needed + log_ratio(CONTRADICTED_RATIO):
            return Drift(now - base, (hours or 4) * HOUR_BLOCKS, devices)
    return None
