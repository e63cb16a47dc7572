"""Locate the onset of a change: the window that best splits all channels into before and after."""

import numpy as np
from numpy.typing import NDArray

from cliffwatch.analysis.offline.segments import filled, rolling_median
from cliffwatch.analysis.run_arrays import Array
from cliffwatch.analysis.span_lengths import log_ratio
from cliffwatch.analysis.spread import NORMAL, TINY
from cliffwatch.analysis.thresholds import LOAD_ROSE, ONSET_MOVED, ONSET_SIGMAS

#: Windows searched on each side of the change that the segmentation found (20 min).
REACH = 120
#: Most evidence that a single window may give, in nats: an outlier is one window, not a change.
_CLIENT_WEIGHT, _DEVICE_WEIGHT = 4.0, 2.0

#: A window above the level after the change by more than this many heights of the change belongs to neither level.
_BEYOND = 1.0
#: Windows per mean, to measure the autocorrelation of a channel.
_MEMORY_WINDOWS = 12
#: Splits that explain the client's latencies worse than the best one by no more than this, in nats, stay candidates.
_LEFT_OPEN = 5.0
#: Standard deviations that such a window (`_BEYOND`) also has to be above the level after the change.
_BEYOND_SIGMAS = 4.0
#: Windows on either side of the change that are in neither level; least values for the levels before and after; least
#: noise of a level.
_MARGIN_WINDOWS = 12
_BEFORE_LEAST, _AFTER_LEAST = 6, 4
_SIGMA_LEAST = 0.01
#: What the run was like before the searched windows: medians of so many windows, of at least so many windows in all.
_USUAL_WINDOWS, _HISTORY_LEAST = 5, 300
#: Windows in a row nearer to the level before that are a return to it, where the change is so many standard deviations
#: high; part of the change by which an excursion may be higher than those before it and be like them.
_BACK_WINDOWS, _CLEAR_SIGMAS, _ALIKE = 2, 6.0, 0.25


def evidence_of_change(
    column: Array, before: float, after: float, sigma: float, weight: float, history: Array
) -> Array:
    """Evidence of each window that it belongs to the level `after` rather than to the level `before`, in nats.

    0 where nothing was measured, and where the window was far above both levels, as in an excursion. `history` is the
    channel before `column`: a window as slow as that often was says little against the level before, however far from
    it, and nothing where the channel came back to that level. So a compaction just before a cliff is no part of it.
    """
    unlike_before = np.minimum((column - before) ** 2 / (2 * sigma**2), _surprise(column, history))
    nats = unlike_before - (column - after) ** 2 / (2 * sigma**2)
    nats = np.where(column > after + max(_BEYOND * (after - before), _BEYOND_SIGMAS * sigma), 0.0, nats)
    nats = np.clip(np.nan_to_num(nats), -weight, weight)
    is_usual = np.isfinite(_surprise(column - _ALIKE * (after - before), history))
    is_usual[_back_at(column, before, after, sigma) :] = False
    return np.asarray(np.where(is_usual, np.minimum(nats, 0.0), nats))


def _back_at(column: Array, before: float, after: float, sigma: float) -> int:
    """Last window at which the channel was back at the level before; 0 where noise could look like that."""
    if after - before < _CLEAR_SIGMAS * sigma:
        return 0
    is_near = np.convolve(column < (before + after) / 2, np.ones(_BACK_WINDOWS), "valid") == _BACK_WINDOWS
    return int(np.flatnonzero(is_near).max(initial=0))


def _surprise(column: Array, history: Array) -> Array:
    """How unusual each window is in the history, in nats: -ln of the share of the history's medians that were as slow.

    Infinite where none was, and of a history too short to say: the distance from the level alone decides.
    """
    known = history[np.isfinite(history)]
    count = len(known) // _USUAL_WINDOWS
    if len(known) < _HISTORY_LEAST:
        return np.full(len(column), np.inf)
    medians = np.sort(np.median(known[len(known) - count * _USUAL_WINDOWS :].reshape(count, _USUAL_WINDOWS), axis=1))
    as_slow = count - np.searchsorted(medians, np.fmin(column, rolling_median(filled(column), _USUAL_WINDOWS)))
    return np.asarray(np.where(as_slow == 0, np.inf, -np.log((as_slow + 1) / (count + 1))))


def gathered(evidence: Array) -> Array:
    """Score of each split, the lowest is best: the evidence for the level after the change, summed over the windows
    before it."""
    return np.concatenate(([0.0], np.cumsum(evidence)))


def place(
    client: Array, others: list[tuple[Array, bool]], rate: Array | None, near: int, reach: int, sides: int
) -> int:
    """Index of the window at which the change near window `near` began, searched within `reach` windows.

    `others` are further channels, each with whether it is a device's; `rate` is the load. The levels before and after
    the change are measured up to `sides` windows beyond the searched ones, but not close to `near`, where the change
    itself is.
    """
    first, last = max(0, near - reach), min(len(client), near + reach)
    clients, devices = np.zeros(last - first), np.zeros(last - first)
    is_usual = _has_usual_load(rate, first, last, near, sides)
    for column, is_device in [(client, False), *others]:
        levels = _levels(column, first, last, near, sides)
        if levels is None:
            continue
        before, after, sigma = levels
        if after <= before or (
            column is not client and after - before < ONSET_SIGMAS * sigma / sides**0.5 + ONSET_MOVED
        ):
            continue
        weight = _DEVICE_WEIGHT if is_device else _CLIENT_WEIGHT
        evidence = evidence_of_change(column[first:last], before, after, sigma, weight, history=column[:first])
        evidence = np.where(is_usual, evidence, 0.0)
        if is_device:
            devices += evidence
        else:
            clients += evidence
    # A device may slow down first: it decides among the splits that the client's own latencies leave open. The change
    # began in one of the windows, so that behind all of them is none.
    by_client = gathered(clients)
    is_open = by_client <= by_client.min() + _LEFT_OPEN
    return first + int(np.argmin(np.where(is_open, by_client + gathered(devices), np.inf)[:-1]))


def _has_usual_load(rate: Array | None, first: int, last: int, near: int, sides: int) -> NDArray[np.bool_]:
    """Which of the searched windows have no more load than there was both before and after the change: what more load
    raised does not say whether the change had begun."""
    levels = None if rate is None else _levels(rate, first, last, near, sides)
    if rate is None or levels is None:
        return np.ones(last - first, dtype=np.bool_)
    before, after, _ = levels
    with np.errstate(invalid="ignore"):
        return np.asarray(~(rate[first:last] > max(before, after) + log_ratio(LOAD_ROSE)))


def _levels(column: Array, first: int, last: int, near: int, sides: int) -> tuple[float, float, float] | None:
    before = column[max(0, first - sides) : max(first, near - _MARGIN_WINDOWS)]
    after = column[min(last, near + _MARGIN_WINDOWS) : last + sides]
    before, after = before[np.isfinite(before)], after[np.isfinite(after)]
    if len(before) < _BEFORE_LEAST or len(after) < _AFTER_LEAST:
        return None
    low, high = float(np.median(before)), float(np.median(after))
    spread = NORMAL * float(np.median(np.abs(before - low)))
    spread_after = NORMAL * float(np.median(np.abs(after - high)))
    sigma = max(spread, min(spread_after, 2 * spread), _SIGMA_LEAST)
    return low, high, sigma * _memory(before) ** 0.5


def _memory(values: Array) -> float:
    """Number of windows with as much information as one independent window: 1 without autocorrelation."""
    count = len(values) // _MEMORY_WINDOWS
    if count < _BEFORE_LEAST:
        return 1.0
    rows = values[len(values) - count * _MEMORY_WINDOWS :].reshape(count, _MEMORY_WINDOWS)
    single, means = np.median(np.abs(np.diff(values))), np.median(np.abs(np.diff(rows.mean(axis=1))))
    return float(np.clip(_MEMORY_WINDOWS * (means / max(single, TINY)) ** 2, 1.0, _MEMORY_WINDOWS))
