"""Drift of a whole run: a rise over hours, as distinct from steps and from a daily swing."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from cliffwatch.analysis.cliff import confidence_of
from cliffwatch.analysis.finding import Finding, FindingKind
from cliffwatch.analysis.offline import ramps, segments
from cliffwatch.analysis.offline.view import View, baseline_before
from cliffwatch.analysis.run_arrays import Array
from cliffwatch.analysis.span_lengths import BLOCK, DAY_SECONDS, HOUR_BLOCKS, REFERENCE_BLOCKS, log_ratio
from cliffwatch.analysis.spread import MEDIAN_ERROR
from cliffwatch.analysis.thresholds import (
    CLEARLY_A_RAMP,
    DRIFT_CONTRADICTED_RATIO,
    DRIFT_DEVICE_MOVED,
    DRIFT_DEVICE_SHARE,
    DRIFT_RATIO,
    DRIFT_RUN_BLOCKS,
    DRIFT_SHORTEST,
    DRIFT_SIGNIFICANCE,
    RETURNS_BLOCKS,
)

#: Blocks in one entry of the timeline in which drift is searched; least entries of its rolling median; and entries in
#: half an hour.
_DRIFT_BLOCKS, _MEDIAN_LEAST, _HALF_HOUR = 10, 3, 3


@dataclass(frozen=True, slots=True)
class Drift:
    """Drift of a run. `error` is the squared error of its ramp; `is_clear`: far below that of the best step."""

    finding: Finding
    error: float
    is_clear: bool


def has_room_for_drift(view: View, end: int) -> bool:
    """Whether a run is long enough before block `end` to have a drift."""
    return end - view.skip >= DRIFT_RUN_BLOCKS


def find_drift(view: View, end: int, changed: Array | None = None) -> Drift | None:
    """Drift of a run before block `end`, None where there is none. `changed`: by how much the level of each block was
    changed suddenly; None where it was not."""
    client = view.client[:end] if changed is None else view.client[:end] - changed[:end]
    count = (end - view.skip) // _DRIFT_BLOCKS
    if not has_room_for_drift(view, end):
        return None
    first = end - count * _DRIFT_BLOCKS
    coarse = _coarse(client[first:])
    noise = MEDIAN_ERROR * segments.long_run_sigma(view.client) / HOUR_BLOCKS**0.5
    ramp = _ramp(coarse)
    if ramp is None:
        return None
    rise, devices = _rise(coarse, ramp), {name: _coarse(device[first:end]) for name, device in view.devices.items()}
    least = max(log_ratio(DRIFT_DEVICE_MOVED), DRIFT_DEVICE_SHARE * rise)
    names = [name for name, device in devices.items() if _rise(device, ramp) > least]
    ratio = DRIFT_CONTRADICTED_RATIO if view.devices and not names else DRIFT_RATIO
    if rise < log_ratio(ratio) + DRIFT_SIGNIFICANCE * noise or not _lasts(coarse, ramp, rise):
        return None
    # A change that was subtracted from the client's level is still in the devices' levels.
    columns = [coarse, *(devices[name] for name in names if changed is None)]
    day = DAY_SECONDS / (view.whole.window_seconds * BLOCK * _DRIFT_BLOCKS)
    begin = first + ramps.joint_start(columns, ramp.end, DRIFT_SHORTEST, day) * _DRIFT_BLOCKS
    base = baseline_before(view, max(begin, view.skip + REFERENCE_BLOCKS))
    last = first + ramp.end * _DRIFT_BLOCKS
    level = float(np.median(view.client[last - HOUR_BLOCKS // 2 :][:HOUR_BLOCKS]))
    finding = Finding(
        FindingKind.DRIFT,
        onset=float(view.whole.starts[view.window(begin)]),
        series=view.name,
        baseline=math.exp(base),
        level=math.exp(level),
        ratio=math.exp(level - base),
        confidence=confidence_of(bool(names), bool(view.devices)),
        corroborated_by=tuple(names),
    )
    is_clear = ramp.error <= CLEARLY_A_RAMP * ramp.step_error
    return Drift(finding, ramp.error, is_clear)


def _coarse(column: Array) -> Array:
    """Column of blocks, in medians of ten minutes; a rise that comes back soon is no part of a drift either."""
    medians = np.median(column.reshape(-1, _DRIFT_BLOCKS), axis=1)
    return segments.rolling_median(medians, 2 * (RETURNS_BLOCKS // _DRIFT_BLOCKS) + _MEDIAN_LEAST)


def _ramp(coarse: Array) -> ramps.Ramp | None:
    """The highest ramp that describes the run better than a step, with and without a trend; None without one."""
    fitted = [ramps.fit_ramp(coarse, DRIFT_SHORTEST, with_trend) for with_trend in (False, True)]
    return max((one for one in fitted if one is not None and one.is_better), key=partial(_rise, coarse), default=None)


def _lasts(coarse: Array, ramp: ramps.Ramp, rise: float) -> bool:
    """Whether a ramp's rise, or most of it, is there after its end."""
    return bool(np.median(coarse[ramp.end :]) - np.median(coarse[: ramp.start + 1][-_HALF_HOUR:]) >= rise / 2)


def _rise(coarse: Array, ramp: ramps.Ramp) -> float:
    """Rise of a ramp, from the hour around its start to the hour around its end."""
    before = coarse[max(0, ramp.start - _HALF_HOUR) : ramp.start + _HALF_HOUR]
    after = coarse[max(0, ramp.end - _HALF_HOUR) : ramp.end + _HALF_HOUR]
    return float(np.median(after) - np.median(before))
