"""Slow detector of steps: one span of blocks against the hours before it, as distinct from a gradual rise.

A step's size is compared with the spread that the same statistic had in this run before: autocorrelation, compaction
and oscillation are in that spread, so that a noisy run needs a larger step.
"""

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from cliffwatch.analysis.online.channel import Channel
from cliffwatch.analysis.run_arrays import Array
from cliffwatch.analysis.span_lengths import (
    BLOCK,
    HALF_BLOCKS,
    HOUR_BLOCKS,
    NOISE_FADES,
    REFERENCE_BLOCKS,
    REFERENCE_MINIMUM,
    STEP_SPANS,
    log_ratio,
)
from cliffwatch.analysis.spread import Spread, lower_middle, middle
from cliffwatch.analysis.thresholds import (
    ALONE_SPAN,
    CONTRADICTED_SPAN,
    FALLING,
    INCONCLUSIVE_SPAN,
    LEVEL_MOVED,
    LONG_SPAN,
    QUARANTINE,
    SHARE_OF_TICK,
    STEP_ALONE_RATIO,
    STEP_ALONE_SIGNIFICANCE,
    STEP_BEYOND_PAST,
    STEP_DEVICE_LONG,
    STEP_DEVICE_SHORT,
    STEP_ENOUGH,
    STEP_OWN_SIGNIFICANCE,
    STEP_RATIOS,
    STEP_SIGNIFICANCE,
    STEP_STEADY,
    STEP_STILL_THERE,
    TICK_ROOM,
)

#: Values of a spread per length of a span: neighbouring values overlap by half.
_STRIDE = 2
#: Span (blocks) whose statistics are compared to measure the noise that client and device share.
_PAIRED_SPAN = 12
#: Pairs of client and device statistics that are stored, and the fewest for a correlation.
_PAIRS_KEPT, _PAIRS_LEAST = 96, 24
#: Last blocks whose median is the present level; and blocks before two spans, all of which are searched for a step's
#: start.
_PRESENT_BLOCKS, _BEFORE_BLOCKS = 3, 12
#: Decay, with each value, of the largest rise from which a healthy run came back.
_FADES = 0.999
#: Least values for a span's own spread, and for a shorter span's to stand in for it; and the least own spread, as a
#: part of the one inferred from shorter spans.
_OWN_LEAST, _SHORTER_LEAST, _INFERRED_PART = 10, 12, 0.75


class SpanStatistics:
    """One channel's statistic of each span (rise of the last `span` blocks over the hours before), and its spread."""

    def __init__(self) -> None:
        self._spreads = {span: Spread() for span in STEP_SPANS}
        #: Statistics in quarantine: block, value, and the largest value up to the next block listed.
        self._waiting: dict[int, deque[tuple[int, float, float]]] = {span: deque() for span in STEP_SPANS}
        self.values: dict[int, float] = {}
        #: The last three blocks, and the last one, against the shortest span's reference.
        self.present = self.last = 0.0
        self._largest: dict[int, float] = {}
        self._pairs: dict[str, deque[tuple[float, float]]] = {}
        self._blocks_to_pair = 0

    def update(self, channel: Channel, is_explained: bool = False) -> None:
        """Update after a block of the channel. `is_explained`: more load explains a rise, or a device that is not
        slower contradicts it."""
        self.values = {}
        blocks = channel.last_blocks(REFERENCE_BLOCKS + STEP_SPANS[-1])
        trend = self._trend(blocks)
        falling = trend is None or trend < -FALLING
        for span in STEP_SPANS:
            reference = blocks[:-span][-REFERENCE_BLOCKS:]
            if len(reference) < REFERENCE_MINIMUM:
                continue
            recent = middle(reference)
            value = lower_middle(blocks[-span:]) - recent
            if span == STEP_SPANS[0]:
                self.present, self.last = middle(blocks[-_PRESENT_BLOCKS:]) - recent, float(blocks[-1]) - recent
            self.values[span] = value
            if falling:
                continue
            waiting = self._waiting[span]
            stride = max(1, span // _STRIDE)
            peak = 0.0 if is_explained else value
            if not waiting or waiting[-1][0] <= channel.block_count - stride:
                waiting.append((channel.block_count, value, peak))
            else:
                waiting[-1] = (waiting[-1][0], waiting[-1][1], max(waiting[-1][2], peak))
            while waiting and waiting[0][0] <= channel.block_count - QUARANTINE:
                _, aged, peak = waiting.popleft()
                self._spreads[span].add(aged)
                self._largest[span] = max(_FADES * self._largest.get(span, 0.0), peak)

    def pair(self, devices: Mapping[str, "SpanStatistics"]) -> None:
        """Store, at intervals, this channel's statistic beside each device's, to correlate them in `shared_noise`."""
        mine = self.values.get(_PAIRED_SPAN)
        self._blocks_to_pair -= 1
        if mine is None or self._blocks_to_pair > 0:
            return
        self._blocks_to_pair = _PAIRED_SPAN // _STRIDE
        for name, device in devices.items():
            other = device.values.get(_PAIRED_SPAN)
            if other is not None:
                self._pairs.setdefault(name, deque(maxlen=_PAIRS_KEPT)).append((mine, other))

    def shared_noise(self, name: str) -> float:
        """Correlation of this statistic with a device's while nothing was wrong; one half while it is not known."""
        pairs = self._pairs.get(name)
        if pairs is None or len(pairs) < _PAIRS_LEAST:
            return 0.5
        # A correlation of signs is robust to outliers; an estimate from few pairs is raised, as it may be too small.
        values = np.array(pairs)
        signs = np.sign(values - np.median(values, axis=0))
        agreement = float(np.mean(signs[:, 0] * signs[:, 1]))
        return min(1.0, max(0.0, math.sin(math.pi / 2 * agreement)) + 1 / math.sqrt(len(pairs)))

    @staticmethod
    def _trend(blocks: Array) -> float | None:
        """Change from the half hour before the last hour to the last half hour; None without enough blocks. Blocks in
        which the level falls, as in a warm-up, do not enter the spread."""
        before = blocks[:-HOUR_BLOCKS][-HALF_BLOCKS:]
        return middle(blocks[-HALF_BLOCKS:]) - middle(before) if len(before) == HALF_BLOCKS else None

    def discard_recent(self) -> None:
        """Discard statistics measured since a change began, which are not healthy ones."""
        for waiting in self._waiting.values():
            waiting.clear()

    def forget_since(self, block: int) -> None:
        """Discard statistics measured since `block`, where an excursion began that has come back."""
        for waiting in self._waiting.values():
            while waiting and waiting[-1][0] > block:
                waiting.pop()

    def learn(self, height: float, blocks: int) -> None:
        """Record a rise of `height` (logarithm) that lasted for `blocks` and came back."""
        for span in STEP_SPANS:
            if span < 2 * blocks:
                self._largest[span] = max(self._largest.get(span, 0.0), height)

    def sigma(self, span: int) -> float | None:
        """Spread of the statistic of `span`, inferred from shorter spans while values are few; None while not known.

        A longer span does not move more than a shorter one, so the spread is no less than that of longer ones.
        """
        shorter: list[float] = []
        own = 0.0
        for other in STEP_SPANS:
            sigma, count = self._spreads[other].sigma(), len(self._spreads[other])
            if sigma is None:
                continue
            if other > span or (other == span and count >= _OWN_LEAST):
                own = max(own, sigma)
            elif other == span or count >= _SHORTER_LEAST:
                shorter.append(sigma * math.pow(other / span, NOISE_FADES))
        known = len(self._spreads[span]) >= _OWN_LEAST
        inferred = max(shorter, default=0.0)
        return max(own, _INFERRED_PART * inferred if known else inferred) or None

    def largest(self, span: int) -> float:
        """The largest value of a span's statistic from which the run came back."""
        return self._largest.get(span, 0.0)


@dataclass(frozen=True, slots=True)
class Step:
    """A step that was found: the span (blocks) that showed it, its height (logarithm), and how significant it is."""

    span: int
    height: float
    significance: float
    corroborated: bool
    has_device: bool
    device_names: tuple[str, ...] = field(default=())


def find_step(
    client: SpanStatistics,
    devices: Mapping[str, SpanStatistics],
    factor: float,
    resolution: float,
    may_fire: Callable[[int, float], bool],
) -> Step | None:
    """Find the step that the shortest span shows; None if no span shows one. `factor` scales the thresholds, for a run
    that has degraded already.

    A height of no more than `resolution` may be a tick of the clock, and needs a device that shows it too. `may_fire`
    is called with a span and a height, and returns whether nothing else explains them.
    """
    for span in STEP_SPANS:
        value = client.values.get(span)
        if value is None or value < factor * log_ratio(STEP_RATIOS[span]):
            continue
        sigma = client.sigma(span)
        if sigma is None:
            continue
        if span < ALONE_SPAN and value < STEP_BEYOND_PAST * client.largest(span):
            continue
        # A step is still there, and is not still growing.
        is_steady = STEP_STEADY[0] * value < client.present < STEP_STEADY[1] * value
        if client.last < STEP_STILL_THERE * value or not is_steady:
            continue
        step = _significant(client, span, value, sigma, devices, factor, value <= TICK_ROOM * resolution)
        if step is not None and may_fire(span, value):
            return step
    return None


def _significant(
    client: SpanStatistics,
    span: int,
    value: float,
    sigma: float,
    devices: Mapping[str, SpanStatistics],
    factor: float,
    is_tick: bool,
) -> Step | None:
    own = value / sigma
    share, least = STEP_DEVICE_SHORT if span < LONG_SPAN else STEP_DEVICE_LONG
    share = SHARE_OF_TICK if is_tick else share
    joint, names = 0.0, []
    contradicted = False
    for name, device in devices.items():
        moved, spread = device.values.get(span), device.sigma(span)
        if moved is None or spread is None:
            continue
        contradicted = contradicted or moved < share * value
        if moved < max(share * value, log_ratio(LEVEL_MOVED)):
            continue
        if moved / spread > least and own > STEP_OWN_SIGNIFICANCE:
            names.append(name)
            shared = client.shared_noise(name)
            joint = max(joint, (min(own, STEP_ENOUGH) + min(moved / spread, STEP_ENOUGH)) / math.sqrt(2 + 2 * shared))
    if joint >= factor * STEP_SIGNIFICANCE[span]:
        return Step(span, value, joint, True, True, tuple(names))
    shortest = CONTRADICTED_SPAN if contradicted else INCONCLUSIVE_SPAN if devices else ALONE_SPAN
    if (
        not is_tick
        and span >= shortest
        and own >= factor * STEP_ALONE_SIGNIFICANCE
        and value >= factor * log_ratio(STEP_ALONE_RATIO)
    ):
        return Step(span, value, own, False, bool(devices))
    return None


def windows_since(channel: Channel, span: int) -> int:
    """How many windows ago the step in the last `span` blocks began, by the split that fits a step best."""
    values = channel.last_blocks(2 * span + _BEFORE_BLOCKS)
    values = values - values.mean()
    count = len(values)
    sizes = np.arange(2, count - 1, dtype=np.float64)
    left = np.cumsum(values)[1 : count - 2]
    return BLOCK * (count - 2 - int(np.argmax(left**2 / sizes + left**2 / (count - sizes))))
