"""Find recurring spikes in the single windows of a whole run: medians of several windows hide spikes."""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from cliffwatch.analysis.cliff import confidence_of
from cliffwatch.analysis.finding import Finding, FindingKind, Role
from cliffwatch.analysis.offline.segments import filled, rolling_median
from cliffwatch.analysis.online.spikes import Spike, Spikes
from cliffwatch.analysis.run_arrays import Array, RunArrays
from cliffwatch.analysis.span_lengths import log_ratio
from cliffwatch.analysis.spread import NORMAL
from cliffwatch.analysis.thresholds import (
    SPIKE_ALIKE,
    SPIKE_WINDOWS,
    SPIKES_BEFORE,
    SPIKES_MINIMUM,
    SPIKES_MORE_LOAD,
    SPIKES_MORE_LOAD_SIGMAS,
    TRAIN_OVER_DISTANCES,
    TRAIN_OVER_WINDOWS,
    WINDOW_ENOUGH,
    WINDOW_MOVED,
    WINDOW_SHARE,
    WINDOW_SIGMAS,
)

#: Blocks around a window whose median is the recent level there.
_RECENT_LEVEL_BLOCKS = 61
#: Blocks around a window whose median is the present load there.
_NEAR_BLOCKS = 5
#: Spikes that recur, in order of time.
Train = Sequence[Spike]


def spike_trains(whole: RunArrays, name: str, skip: int) -> list[Train]:
    """Trains of spikes of the series `name` that begin from window `skip` on."""
    deviations = _deviations(whole, name)
    sigma = _sigma(deviations)
    raised = np.zeros(len(deviations), dtype=np.bool_)
    for device in _other_devices(whole, name):
        moved = _deviations(whole, device)
        needed = np.maximum(
            max(log_ratio(WINDOW_MOVED), WINDOW_SIGMAS * _sigma(moved)),
            np.minimum(WINDOW_SHARE * deviations, log_ratio(WINDOW_ENOUGH)),
        )
        with np.errstate(invalid="ignore"):
            raised |= moved > needed
    more = _more_load(whole)
    spikes = Spikes()
    found: list[list[Spike]] = []
    for window, deviation in enumerate(deviations.tolist()):
        if math.isnan(deviation) or whole.masked[window]:
            continue
        if more[window]:
            spikes.forget()
            continue
        spike = spikes.follow(window, float(whole.starts[window]), deviation, sigma, bool(raised[window]))
        if spike is None:
            continue
        if found and _belongs(found[-1], spike):
            found[-1].append(spike)
            continue
        train = spikes.train(spike)
        if train is not None and window >= skip:
            found.append(list(train))
    trains = [_from_first(train, deviations, raised, whole.starts) for train in found if len(train) >= SPIKES_MINIMUM]
    return [train for train in trains if train[0].window >= skip]


def recurring_spikes(whole: RunArrays, name: str, trains: Sequence[Train]) -> list[Finding]:
    """Findings of the trains of spikes of the series `name`."""
    deviations, devices = _deviations(whole, name), _other_devices(whole, name)
    return [_finding(whole, name, train, devices, deviations) for train in trains]


def without_spikes(whole: RunArrays, name: str, trains: Sequence[Train]) -> RunArrays:
    """The run with blocks of the series `name`, and of devices, in which the spikes of its trains are left out."""
    deviations = _deviations(whole, name)
    is_spike = np.zeros(len(deviations), dtype=np.bool_)
    for train in trains:
        least, last = SPIKE_ALIKE * median(one.height for one in train), train[-1].window + SPIKE_WINDOWS
        for begin, after in _brief_rises(deviations[:last] >= least):
            is_spike[begin:after] |= begin >= train[0].window
    if not is_spike.any():
        return whole
    names = [name, *_other_devices(whole, name)]
    return whole.with_blocks(
        {one: whole.levels[one] - np.where(is_spike, _deviations(whole, one), 0.0) for one in names}
    )


def _brief_rises(raised: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First window of each run of windows that are `raised`, and the one after its last, if no longer than a spike."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], raised, [False])))).reshape(-1, 2).tolist()
    return [(first, after) for first, after in edges if after - first <= SPIKE_WINDOWS]


def _other_devices(whole: RunArrays, name: str) -> list[str]:
    return [one for one in whole.names(Role.DEVICE_LATENCY) if one != name]


def _from_first(train: Sequence[Spike], deviations: Array, raised: NDArray[np.bool_], starts: Array) -> Train:
    """The train with the rises before it that are like its spikes, and no further apart.

    They were too few, or in too much noise, to be seen as a train; or right after a known event, which is no evidence,
    but may be when one began that went on.
    """
    height, apart = (median(each) for each in ([one.height for one in train], _distances(train)))
    first = list(train)
    for begin, after in reversed(_brief_rises(deviations[: train[0].window] >= SPIKE_ALIKE * height)):
        if first[0].window - begin > SPIKES_BEFORE * apart:
            break
        highest = float(deviations[begin:after].max())
        first.insert(0, Spike(begin, float(starts[begin]), highest, bool(raised[begin:after].any())))
    return first


def _distances(train: Train) -> list[int]:
    return [after.window - before.window for before, after in pairwise(train)]


def _belongs(train: list[Spike], spike: Spike) -> bool:
    gap = (train[-1].window - train[0].window) / (len(train) - 1)
    return spike.window - train[-1].window <= max(TRAIN_OVER_WINDOWS, TRAIN_OVER_DISTANCES * gap)


def _finding(whole: RunArrays, name: str, train: Train, devices: list[str], deviations: Array) -> Finding:
    recent = float(np.nanmedian(whole.levels[name] - deviations))
    height = float(np.median([one.height for one in train]))
    share = sum(one.corroborated for one in train) / len(train)
    gap = (train[-1].window - train[0].window) / (len(train) - 1)
    is_over = len(whole.starts) - train[-1].window > max(TRAIN_OVER_WINDOWS, TRAIN_OVER_DISTANCES * gap)
    return Finding(
        FindingKind.SPIKES,
        onset=train[0].start,
        series=name,
        baseline=math.exp(recent),
        level=math.exp(recent + height),
        ratio=math.exp(height),
        confidence=confidence_of(share > 0.5, bool(devices)),
        until=float(whole.ends[train[-1].window]) if is_over else None,
        corroborated_by=tuple(devices) if share > 0.5 else (),
    )


def _deviations(whole: RunArrays, name: str) -> Array:
    recent = rolling_median(filled(whole.blocks[name]), _RECENT_LEVEL_BLOCKS)
    block = np.clip(np.searchsorted(whole.block_first, np.arange(len(whole.starts)), side="right") - 1, 0, None)
    return np.asarray(whole.levels[name] - recent[block])


def _sigma(deviations: Array) -> float:
    return NORMAL * float(np.nanmedian(np.abs(deviations)))


def _more_load(whole: RunArrays) -> list[bool]:
    """For each window, whether the minutes around it had more load than the hour around it."""
    rates = whole.names(Role.RATE)
    if not rates:
        return [False] * len(whole.starts)
    blocks = filled(whole.blocks[rates[0]])
    near, recent = rolling_median(blocks, _NEAR_BLOCKS), rolling_median(blocks, _RECENT_LEVEL_BLOCKS)
    sigma = NORMAL * float(np.median(np.abs(near - recent)))
    more = near - recent > max(log_ratio(SPIKES_MORE_LOAD), SPIKES_MORE_LOAD_SIGMAS * sigma)
    block = np.clip(np.searchsorted(whole.block_first, np.arange(len(whole.starts)), side="right") - 1, 0, None)
    return [bool(one) for one in more[block]]
