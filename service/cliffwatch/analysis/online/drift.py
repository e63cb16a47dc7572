"""Drift detector: an hour or two above the baseline and the hours before, by more than a daily swing explains.

A second method searches the whole run so far, in half hours, for a rise that continues, and that no daily swing fits as
well.
"""

import math
from dataclasses import dataclass

import numpy as np

from cliffwatch.analysis.cliff import confidence_of
from cliffwatch.analysis.finding import Finding, FindingKind
from cliffwatch.analysis.online.channel import Channel
from cliffwatch.analysis.online.correlated import CorrelatedSeries
from cliffwatch.analysis.online.rising import fit_rising
from cliffwatch.analysis.span_lengths import HALF_BLOCKS, HOUR_BLOCKS, log_ratio
from cliffwatch.analysis.spread import middle
from cliffwatch.analysis.thresholds import (
    CLIENT_DRIFT_BY_SWING,
    CLIENT_DRIFT_RATIO,
    COLD,
    DRIFT_CONFIDENCE,
    DRIFT_CONTRADICTED_BY,
    DRIFT_MARGIN,
    DRIFT_RATIO,
    DRIFT_SIGNIFICANCE,
    DRIFT_SIGNIFICANCE_BEFORE,
    DRIFT_TOGETHER,
    DRIFT_TOGETHER_SHARE,
    JOINT_DRIFT_BY_SWING,
    JOINT_DRIFT_DEVICE_SHARE,
    JOINT_DRIFT_HALVES,
    JOINT_DRIFT_RATIO,
    JOINT_DRIFT_RATIO_MINIMUM,
    RETURNED_BLOCKS,
    RETURNED_PART,
    SWING,
)

#: Blocks whose median is the present level, and how many hours before it the level is that it is compared with (0: the
#: baseline).
SPANS = ((60, 0), (120, 0), (60, 2), (60, 3), (60, 4), (60, 6), (60, 8))
#: Factor on the noise that is inferred from `_INFERRED_FROM` blocks for longer spans: autocorrelated noise averages out
#: more slowly than independent noise.
_INFERRED = 1.3
_INFERRED_FROM = 20
_HALVES_A_DAY = 48
_HOURS_OF_DAY = 24
#: Hours for which a drift found against the baseline is assumed to have lasted; and lowest half hours whose mean is the
#: lowest level.
_HOURS_KNOWN, _LOWEST = 4, 6


@dataclass(frozen=True, slots=True)
class Drift:
    """Drift found online: its rise over the baseline (a logarithm), its length in blocks, and the devices that rose."""

    rise: float
    blocks: int
    devices: tuple[str, ...]

    def finding(self, series: str, base: float, onset: float, detected: float) -> Finding:
        """Finding of this drift of a `series` from the level `base` (a logarithm); times in seconds."""
        return Finding(
            FindingKind.DRIFT,
            onset=onset,
            series=series,
            baseline=math.exp(base),
            level=math.exp(base + self.rise),
            ratio=math.exp(self.rise),
            confidence=DRIFT_CONFIDENCE if self.devices else confidence_of(False, True),
            detected=detected,
            corroborated_by=self.devices,
        )


def find_drift(channel: Channel, base: float, sigma: float | None, correlated: CorrelatedSeries) -> Drift | None:
    """Find drift of the last hour or two against the baseline and the hours before; None where there is none.

    `base`: the level (logarithm) that drift is measured against; `sigma`: the usual spread of the level of 20 blocks.
    """
    if sigma is None:
        return None
    for span, hours in SPANS:
        blocks = channel.last_blocks(span)
        if len(blocks) < span:
            return None
        noise = _INFERRED * sigma * math.pow(_INFERRED_FROM / span, 0.5)
        now = middle(blocks)
        rise, needed = now - base, log_ratio(DRIFT_RATIO) + DRIFT_SIGNIFICANCE * noise
        if hours:
            before = channel.last_blocks(2 * HOUR_BLOCKS, skip=hours * HOUR_BLOCKS - HOUR_BLOCKS // 2)
            if len(before) < HOUR_BLOCKS:
                continue
            rise = now - max(base, middle(before))
            swing = 2 * SWING * math.sin(math.pi * hours / _HOURS_OF_DAY)
            needed = log_ratio(1 + swing) + DRIFT_MARGIN + DRIFT_SIGNIFICANCE_BEFORE * noise
        devices = correlated.risen(span, rise)
        # A client and a device that rise together are less likely to be noise than a client alone.
        if correlated.risen(span, rise, DRIFT_TOGETHER_SHARE):
            needed -= DRIFT_TOGETHER * DRIFT_SIGNIFICANCE * noise
        if rise < needed or not _lasts(channel, base, now - base):
            continue
        if devices or not correlated.devices or rise >= needed + log_ratio(DRIFT_CONTRADICTED_BY):
            return Drift(now - base, (hours or _HOURS_KNOWN) * HOUR_BLOCKS, devices)
    return None


def find_joint_drift(channel: Channel, base: float, correlated: CorrelatedSeries) -> Drift | None:
    """Find drift in the half hours of the whole run, of client and devices together; `base` as in `find_drift`."""
    halves = [(end, level) for block, end, level in channel.halves if block - HALF_BLOCKS >= channel.regime]
    halves = halves[0 if channel.declared or channel.regime else 2 :]
    if len(halves) < JOINT_DRIFT_HALVES:
        return None
    ends, levels = np.array(halves).T
    first = int(np.argmax(levels <= np.sort(levels)[:_LOWEST].mean() + COLD))
    ends, levels = ends[first:], levels[first:]
    if len(levels) < JOINT_DRIFT_HALVES:
        return None
    trajectories = correlated.trajectories(ends)
    joint = (levels + np.mean(list(trajectories.values()), axis=0)) / 2 if trajectories else levels
    ratio, by_swing = (
        (JOINT_DRIFT_RATIO, JOINT_DRIFT_BY_SWING) if trajectories else (CLIENT_DRIFT_RATIO, CLIENT_DRIFT_BY_SWING)
    )
    client, both = fit_rising(levels, _HALVES_A_DAY), fit_rising(joint, _HALVES_A_DAY)
    if client is None or both is None or client.rise < log_ratio(ratio) or both.by_swing < by_swing:
        return None
    shape = client.shape - client.shape.mean()
    share = client.shape[-1] / float(shape @ shape)
    devices = tuple(
        name
        for name, trajectory in trajectories.items()
        if float(shape @ trajectory) * share > JOINT_DRIFT_DEVICE_SHARE * client.rise
    )
    lasting = float(levels[-2:].min()) - float(np.sort(levels)[:_LOWEST].mean())
    risen = float(levels[-1]) - base
    if risen < log_ratio(JOINT_DRIFT_RATIO_MINIMUM) or lasting < client.rise / 2 or (trajectories and not devices):
        return None
    if not _lasts(channel, base, risen):
        return None
    blocks = (len(levels) - client.start) * HALF_BLOCKS
    return Drift(risen, blocks, devices)


def _lasts(channel: Channel, base: float, rise: float) -> bool:
    """Whether a rise over the level `base` is not over by now."""
    return middle(channel.last_blocks(RETURNED_BLOCKS)) - base > RETURNED_PART * rise
