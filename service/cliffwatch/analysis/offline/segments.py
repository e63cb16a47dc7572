"""Segment a whole run by its level, and decide which edges of segments are lasting changes."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cliffwatch.analysis.offline.partition import segment_edges
from cliffwatch.analysis.run_arrays import Array
from cliffwatch.analysis.span_lengths import HOUR_BLOCKS, REFERENCE_BLOCKS, log_ratio
from cliffwatch.analysis.spread import MEDIAN_ERROR, NORMAL, ONE_SIGMA, middle
from cliffwatch.analysis.thresholds import (
    SEGMENT_CONTRADICTED_RATIO,
    SEGMENT_PENALTY,
    SEGMENT_RATIO,
    SEGMENT_WITHIN,
)

_SEGMENT_MINIMUM = 5
#: Most blocks before and after an edge whose medians are the levels there.
BEFORE_BLOCKS, AFTER_BLOCKS = REFERENCE_BLOCKS, 90
#: Most places of a run at which the change of its medians is measured, for its own spread.
_PLACES = 300
#: Blocks per mean, to measure how noise falls with length; the fewest means; and the noise where there are fewer, or
#: where they do not differ.
_MEANS_BLOCKS, _MEANS_LEAST = (1, 5, 20, 30), 12
_SIGMA_UNKNOWN, _SIGMA_LEAST = 0.1, 1e-3
#: Blocks of the rolling median, and standard deviations around it, to which a column is clipped before it is segmented.
_USUAL_BLOCKS, _USUAL_SIGMAS = 15, 3.0
#: Least number of segments for which a column has room; divisor of the span after a change, for the distance between
#: places; least blocks after a change for a measured spread; and number of medians whose mean is the lowest level.
_SEGMENTS_LEAST, _OVERLAP, _AFTER_LEAST, _LOWEST = 4, 4, 6, 3


@dataclass(frozen=True, slots=True)
class Edge:
    """A change of level at `block`: logarithms of the levels before and after it, and its significance."""

    block: int
    before: float
    after: float
    significance: float

    @property
    def height(self) -> float:
        return self.after - self.before


def filled(column: Array) -> Array:
    """Fill holes with the value measured last."""
    known = np.isfinite(column)
    if not known.any():
        return np.zeros_like(column)
    last = np.maximum.accumulate(np.where(known, np.arange(len(column)), -1))
    return np.asarray(column[np.where(last < 0, int(np.argmax(known)), last)])


def rolling_median(column: Array, width: int) -> Array:
    """Rolling median of `width` blocks around each block; the ends are padded by mirroring."""
    half = width // 2
    if len(column) <= 2 * half:
        return np.full_like(column, float(np.median(column)))
    padded = np.concatenate((column[half:0:-1], column, column[-2 : -half - 2 : -1]))
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1), axis=1))


def long_run_sigma(column: Array) -> float:
    """Standard deviation of a block, to infer the noise of means: with autocorrelation, without changes of level."""
    sigmas = []
    for length in _MEANS_BLOCKS:
        count = len(column) // length
        if count < _MEANS_LEAST:
            break
        means = column[len(column) - count * length :].reshape(count, length).mean(axis=1)
        step = np.abs(np.diff(means))
        sigmas.append(NORMAL * float(np.median(step)) / 2**0.5 * length**0.5)
    return max(sigmas, default=_SIGMA_UNKNOWN) or _SIGMA_LEAST


def candidates(columns: list[Array]) -> list[int]:
    """Blocks at which the columns change together: the best partition of the columns, clipped to their usual noise.

    The penalty accounts for autocorrelation, because each column is scaled by its own long-run standard deviation.
    """
    prepared = []
    for column in columns:
        smooth = rolling_median(column, _USUAL_BLOCKS)
        sigma = long_run_sigma(column)
        prepared.append(np.clip(column, smooth - _USUAL_SIGMAS * sigma, smooth + _USUAL_SIGMAS * sigma) / sigma)
    signal = np.column_stack(prepared)
    if len(signal) < _SEGMENTS_LEAST * _SEGMENT_MINIMUM:
        return []
    penalty = (1 + len(columns)) * SEGMENT_PENALTY * float(np.log(len(signal)))
    return segment_edges(signal, _SEGMENT_MINIMUM, penalty)


def lasting(edges: list[int], column: Array, returns: int) -> list[int]:
    """Drop edges that belong to excursions which came back within `returns` blocks, in one stage or several."""
    kept = list(edges)
    while (shortest := _shortest_excursion([0, *kept, len(column)], column, returns)) is not None:
        # Without its edges, the segments on the excursion's two sides become one again.
        first, last = shortest
        del kept[first - 1 : last + 1]
    return kept


def _shortest_excursion(bounds: list[int], column: Array, returns: int) -> tuple[int, int] | None:
    """First and last segment of the shortest excursion, of fewer than `returns` blocks; None if there is none."""
    levels = [float(np.median(column[a:b])) for a, b in pairwise(bounds)]
    found = [
        (bounds[last + 1] - bounds[first], first, last)
        for first in range(1, len(levels) - 1)
        for last in range(first, len(levels) - 1)
        if bounds[last + 1] - bounds[first] < returns and _comes_back(levels[first - 1 : last + 2])
    ]
    return min(found)[1:] if found else None


def _comes_back(levels: list[float]) -> bool:
    """Whether the levels between the first and the last are all to one side of the first, and the last is near it: not
    so much higher that it is a change itself, however much higher it was before."""
    apart = [level - levels[0] for level in levels[1:]]
    within, after = apart[:-1], apart[-1]
    is_one_sided = min(within) > 0 or max(within) < 0
    return is_one_sided and abs(after) < 0.5 * max(abs(each) for each in within) and after < log_ratio(SEGMENT_RATIO)


def ends_of_rises(column: Array, edges: list[int]) -> list[int]:
    """For each edge, the block up to which its change lasts: the next edge, but for a rise the next one that is large
    enough to be a change itself, or that is large beside the rise, or after which half of the rise is gone.

    Otherwise a rise of hours would be cut in two by a small edge within it, each part too short to count.
    """
    bounds = [0, *edges, len(column)]
    levels = [float(np.median(column[a:b])) for a, b in pairwise(bounds)]
    ends = []
    for place in range(len(edges)):
        before, height = levels[place], levels[place + 1] - levels[place]
        within = max(log_ratio(SEGMENT_CONTRADICTED_RATIO), SEGMENT_WITHIN * height)
        last = place + 1
        while (
            height >= log_ratio(SEGMENT_CONTRADICTED_RATIO)
            and last + 1 < len(levels)
            and abs(levels[last + 1] - levels[last]) < within
            and levels[last + 1] >= before + height / 2
        ):
            last += 1
        ends.append(bounds[last + 1])
    return ends


def own_spread(column: Array, before: int, after: int, away_from: list[int]) -> float | None:
    """Usual (robust) spread of the difference between the medians of `before` blocks and of the `after` blocks that
    follow them, over all places of the run away from the edges `away_from`. None where such places are too few."""
    stride = max(1, after // _OVERLAP, len(column) // _PLACES)
    at = np.arange(before, len(column) - after + 1, stride)
    edges = np.sort(np.array(away_from))
    near = np.searchsorted(edges, at + after, side="left") - np.searchsorted(edges, at - before, side="right")
    places = at[near == 0].tolist()
    if len(places) < _MEANS_LEAST:
        return None
    values = np.array([middle(column[at : at + after]) - middle(column[at - before : at]) for at in places])
    centre = float(np.median(values))
    deviation = NORMAL * float(np.median(np.abs(values - centre)))
    independent = max(2.0, len(places) * stride / (before + after) * 2)
    return max(deviation, float(np.quantile(values, ONE_SIGMA[1]) - np.quantile(values, ONE_SIGMA[0])) / 2) * (
        1 + 1.0 / independent
    )


def judge_edge(
    column: Array, edge: int, previous: int, following: int, away_from: list[int], until: int | None = None
) -> Edge:
    """Measure the change at `edge`, between the edges `previous` and `following`. The level before the change is that
    of the blocks up to `until`, by default up to `edge`."""
    until = edge if until is None else until
    first, last = max(previous, until - BEFORE_BLOCKS), min(following, edge + AFTER_BLOCKS)
    before, after = column[first:until], column[edge:last]
    level_before, level_after = float(np.median(before)), float(np.median(after))
    sigma = long_run_sigma(column)
    inferred = MEDIAN_ERROR * sigma * (1 / len(before) + 1 / len(after)) ** 0.5
    is_long = len(after) >= _AFTER_LEAST
    measured = own_spread(column, min(len(before), HOUR_BLOCKS), len(after), away_from) if is_long else None
    spread = max(inferred, measured or 0.0)
    return Edge(edge, level_before, level_after, (level_after - level_before) / spread)


def is_effect(edge: Edge, lowest: float, ratio: float = SEGMENT_RATIO) -> bool:
    """Whether a rise is large enough to be reported: by `ratio`, over the level just before it and over `lowest`."""
    return edge.height >= log_ratio(ratio) and edge.after - lowest >= log_ratio(ratio)


def lowest_level(column: Array, until: int, span: int, skip: int) -> float:
    """Lowest level before block `until`: mean of the three lowest medians of `span` blocks, without the first `skip`
    blocks."""
    first = min(skip, max(0, until - span))
    pieces = [column[at : at + span] for at in range(first, max(first + 1, until - span + 1), max(1, span // 2))]
    medians: NDArray[np.float64] = np.array([np.median(piece[: max(1, until - first)]) for piece in pieces])
    return float(np.sort(medians)[:_LOWEST].mean())
