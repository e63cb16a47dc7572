"""Find the cliffs, steps, drifts and recoveries of a whole run, each with its onset and size."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cliffwatch.analysis.cliff import confidence_of, is_cliff, sudden_kind
from cliffwatch.analysis.finding import Finding, FindingKind, Notice, Role, Sample, Series
from cliffwatch.analysis.offline import onset, ramps, segments
from cliffwatch.analysis.offline.drift import find_drift, has_room_for_drift
from cliffwatch.analysis.offline.recurring import recurring_spikes, spike_trains, without_spikes
from cliffwatch.analysis.offline.view import View, baseline_before, view_of
from cliffwatch.analysis.primary_series import primary_series
from cliffwatch.analysis.run_arrays import Array, whole_run
from cliffwatch.analysis.span_lengths import HALF_BLOCKS, HOUR_BLOCKS, log_ratio
from cliffwatch.analysis.spread import MEDIAN_ERROR
from cliffwatch.analysis.thresholds import (
    EDGE_BLOCKS_BEFORE,
    FURTHER_RATIO,
    FURTHER_SIGNIFICANCE,
    LEAD_BLOCKS,
    LEVEL_MOVED,
    LOAD_BEFORE_BLOCKS,
    RETURNED_PART,
    RETURNS_BLOCKS,
    SEGMENT_ALONE_SIGNIFICANCE,
    SEGMENT_CONFIDENCE,
    SEGMENT_CONFIDENCE_BY,
    SEGMENT_CONFIDENCE_MOST,
    SEGMENT_CONTRADICTED_RATIO,
    SEGMENT_DEVICE_ENOUGH,
    SEGMENT_DEVICE_SHARE,
    SEGMENT_DEVICE_SIGNIFICANCE,
    SEGMENT_JOINT,
    SEGMENT_MORE_LOAD_SIGMAS,
    SEGMENT_OWN_SIGNIFICANCE,
    SEGMENT_SIGNIFICANCE,
    SPIKES_MINIMUM,
    STEP_ALONE_RATIO,
    STEP_ENOUGH,
    STEPS_APART,
    TAIL_BLOCKS,
    TAIL_BLOCKS_SMALL,
)

#: Blocks on each side of an edge by which a step is distinguished from a ramp (2 h).
_GRADUAL_BLOCKS = 120
#: Divisors of lengths, for short runs: the longest excursion of a run; the shortest ramp around an edge; and the
#: windows searched for an onset, of a run.
_RETURNS_PART, _RAMP_PART, _REACH_PART = 4, 3, 10
#: Blocks of the smoothing median, and points that remain, where a step and a ramp are compared.
_SMOOTH_BLOCKS, _SHAPE_POINTS = 5, 120
#: Windows on either side of those searched for an onset, as a multiple of their reach.
_SIDES = 3


def analyse(
    series: Sequence[Series], samples: Sequence[Sample], notices: Sequence[Notice], window_seconds: float
) -> list[Finding]:
    """Changes for the worse, recoveries and spikes of a run in order of onset. Spans count windows of `window_seconds`.

    `detected` is None in all of them: only online detection raises findings while a run goes on.
    """
    whole = whole_run(series, samples, notices, window_seconds)
    if whole is None:
        return []
    findings: list[Finding] = []
    for name in primary_series(whole.series):
        view = view_of(whole, name)
        if view is None:
            continue
        trains = spike_trains(whole, name, view.skip_window)
        changes = _changes(view_of(without_spikes(whole, name, trains), name) or view)
        findings += changes
        # Those of a cliff are part of it, also with what was high just before it.
        outside = [one for one in trains if not _is_in_cliff([spike.start for spike in one], changes)]
        findings += recurring_spikes(whole, name, outside)
    return sorted(findings, key=lambda finding: finding.onset)


def _changes(view: View) -> list[Finding]:
    """Find drift, cliffs, steps and recoveries."""
    client = view.client
    main = next(iter(view.devices.values()), None)
    edges = segments.candidates([client] if main is None else [client, main])
    edges = segments.lasting(edges, client, min(RETURNS_BLOCKS, len(client) // _RETURNS_PART))
    judged = _judged(client, edges)
    findings, accepted = _sudden(view, edges, judged, also_gradual=False)
    level = np.zeros(len(client))
    for edge, _ in accepted:
        level[edge.block :] += edge.height
    # After a cliff, the level is too noisy to find drift in it.
    end = next((edge.block for edge, one in accepted if one.kind is FindingKind.CLIFF), len(client))
    drift = find_drift(view, end, level if accepted else None)
    steps = [one for _, one in accepted if one.kind is FindingKind.STEP and one in findings]
    if drift is not None and steps:
        whole = find_drift(view, end)
        if whole is not None and whole.is_clear and whole.error < STEPS_APART * drift.error:
            # The steps are where the drift rose fastest.
            drift, findings = whole, [one for one in findings if one not in steps]
    if drift is None and not accepted and has_room_for_drift(view, end):
        # What is gradual around an edge, and no drift of the run, was a step with noise around it.
        findings, _ = _sudden(view, edges, judged, also_gradual=True)
    return findings if drift is None else [*findings, drift.finding]


def _judged(client: Array, edges: list[int]) -> list[tuple[segments.Edge, int]]:
    """The edges with room on both sides, each measured, and up to where its change lasts."""
    bounds = [0, *edges, len(client)]
    lasting = segments.ends_of_rises(client, edges)
    return [
        (segments.judge_edge(client, edge, previous, following, edges), following)
        for previous, edge, following in zip(bounds, edges, lasting, strict=False)
        if edge - previous >= EDGE_BLOCKS_BEFORE and following - edge >= 2
    ]


def _sudden(
    view: View, edges: list[int], judged: list[tuple[segments.Edge, int]], *, also_gradual: bool
) -> tuple[list[Finding], list[tuple[segments.Edge, Finding]]]:
    """Cliffs, steps and recoveries at the edges of a run that were `judged`, those of a gradual rise only if
    `also_gradual`. Returned too: the cliffs and steps as they were found, each with its edge."""
    findings: list[Finding] = []
    accepted: list[tuple[segments.Edge, Finding]] = []
    active: Finding | None = None
    healthy = 0.0
    for edge, following in judged:
        if active is not None and edge.after - healthy < RETURNED_PART * (math.log(active.level) - healthy):
            findings[findings.index(active)], recovery = _recovered(view, active, edge)
            findings.append(recovery)
            active = None
            continue
        if edge.block < view.skip or not (also_gradual or _is_sudden(view.client, edge)):
            continue
        if active is not None and not _is_further(view.client, edge, accepted[-1][0].block, following):
            continue
        found = _finding(view, edge, following, edges)
        if found is not None:
            findings.append(found)
            accepted.append((edge, found))
            if active is None:
                active, healthy = found, edge.before
    return findings, accepted


def _is_further(client: Array, edge: segments.Edge, since: int, following: int) -> bool:
    """Whether an edge is a further change, in a run that changed at the block `since`: not soon after that, large, and
    significant by the noise since then."""
    if edge.height < log_ratio(FURTHER_RATIO) or edge.block - since < RETURNS_BLOCKS:
        return False
    before, after = client[since : edge.block], client[edge.block : following][: segments.AFTER_BLOCKS]
    sigma = segments.long_run_sigma(client[since:following])
    spread = MEDIAN_ERROR * sigma * (1 / len(before) + 1 / len(after)) ** 0.5
    return bool(edge.height >= FURTHER_SIGNIFICANCE * spread)


def _is_sudden(client: Array, edge: segments.Edge) -> bool:
    """Whether a step describes the hours around an edge no worse than a ramp over at least a third of them."""
    around = client[max(0, edge.block - _GRADUAL_BLOCKS) : edge.block + _GRADUAL_BLOCKS]
    # Values far above or below the change do not show whether it was gradual.
    beyond = abs(edge.height) / 2
    around = np.clip(around, min(edge.before, edge.after) - beyond, max(edge.before, edge.after) + beyond)
    smooth = segments.rolling_median(around, _SMOOTH_BLOCKS)[:: max(1, len(around) // _SHAPE_POINTS)]
    ramp = ramps.fit_ramp(smooth, len(smooth) // _RAMP_PART)
    return ramp is None or not ramp.is_better


def _finding(view: View, edge: segments.Edge, following: int, edges: list[int]) -> Finding | None:
    """Finding of an edge; None if it is too small, too brief or too insignificant (with the devices' evidence), or if
    more load explains it."""
    lasts = following - edge.block
    lowest = segments.lowest_level(view.client, edge.block, HOUR_BLOCKS, view.skip)
    if not segments.is_effect(edge, lowest):
        return None
    is_large = is_cliff(edge.height)
    if lasts < (TAIL_BLOCKS if is_large else TAIL_BLOCKS_SMALL) or _has_more_load(view, edge.block, lasts):
        return None
    best, names = 0.0, []
    for name, column in view.devices.items():
        previous = max((one for one in edges if one < edge.block), default=0)
        moved = segments.judge_edge(column, edge.block, previous, following, edges)
        earlier = max((one for one in edges if one < edge.block - LEAD_BLOCKS), default=0)
        if edge.block - LEAD_BLOCKS - earlier >= EDGE_BLOCKS_BEFORE:
            led = segments.judge_edge(column, edge.block, earlier, following, edges, edge.block - LEAD_BLOCKS)
            moved = max(moved, led, key=lambda one: one.significance)
        share = min(SEGMENT_DEVICE_SHARE * edge.height, log_ratio(SEGMENT_DEVICE_ENOUGH))
        if moved.height >= max(share, log_ratio(LEVEL_MOVED)) and moved.significance > SEGMENT_DEVICE_SIGNIFICANCE:
            names.append(name)
            best = max(best, moved.significance)
    joint = (min(edge.significance, STEP_ENOUGH) + min(best, STEP_ENOUGH)) / SEGMENT_JOINT
    if names and edge.significance >= SEGMENT_OWN_SIGNIFICANCE and joint >= SEGMENT_SIGNIFICANCE:
        confidence = min(SEGMENT_CONFIDENCE_MOST, SEGMENT_CONFIDENCE + SEGMENT_CONFIDENCE_BY * joint)
    elif _stands_alone(view, edge, lasts):
        confidence = confidence_of(False, bool(view.devices))
    else:
        return None
    base = baseline_before(view, edge.block)
    window = _onset_window(view, edge.block)
    return Finding(
        sudden_kind(edge.height),
        onset=float(view.whole.starts[window]),
        series=view.name,
        baseline=math.exp(base),
        level=math.exp(edge.after),
        ratio=math.exp(edge.after - base),
        confidence=confidence,
        corroborated_by=tuple(names),
    )


def _stands_alone(view: View, edge: segments.Edge, lasts: int) -> bool:
    """Whether a change that no device shows is clear enough for a finding; where a device was measured, it also has to
    be longer and higher."""
    if edge.significance < SEGMENT_ALONE_SIGNIFICANCE:
        return False
    if not view.devices:
        return edge.height >= log_ratio(STEP_ALONE_RATIO)
    return lasts >= HOUR_BLOCKS and edge.height >= log_ratio(SEGMENT_CONTRADICTED_RATIO)


def _has_more_load(view: View, edge: int, lasts: int) -> bool:
    if view.rate is None:
        return False
    before, after = (
        view.rate[max(0, edge - LOAD_BEFORE_BLOCKS) : edge],
        view.rate[edge : edge + min(lasts, HALF_BLOCKS)],
    )
    sigma = MEDIAN_ERROR * segments.long_run_sigma(view.rate) * (1 / len(before) + 1 / len(after)) ** 0.5
    return bool(np.median(after) - np.median(before) > max(log_ratio(LEVEL_MOVED), SEGMENT_MORE_LOAD_SIGMAS * sigma))


def _onset_window(view: View, edge: int) -> int:
    whole = view.whole
    client = whole.levels[view.name]
    others = [
        (whole.levels[one.name], one.role is Role.DEVICE_LATENCY)
        for one in whole.series
        if one.role in (Role.LATENCY, Role.DEVICE_LATENCY) and one.name != view.name
    ]
    rate = next((whole.levels[one] for one in whole.names(Role.RATE)), None)
    reach = min(onset.REACH, len(client) // _REACH_PART)
    return onset.place(client, others, rate, view.window(edge), reach, sides=_SIDES * reach)


def _recovered(view: View, active: Finding, edge: segments.Edge) -> tuple[Finding, Finding]:
    at = float(view.whole.starts[view.window(edge.block)])
    recovery = replace(
        active,
        kind=FindingKind.RECOVERY,
        onset=at,
        level=math.exp(edge.after),
        ratio=math.exp(edge.after) / active.baseline,
    )
    return replace(active, until=at), recovery


def _is_in_cliff(starts: Sequence[float], changes: Sequence[Finding]) -> bool:
    """Whether spikes that start at those moments begin in a cliff, or in too small a number before one to recur."""
    cliffs = [
        (one.onset, math.inf if one.until is None else one.until) for one in changes if one.kind is FindingKind.CLIFF
    ]
    outside = [start for start in starts if not any(onset <= start <= until for onset, until in cliffs)]
    return starts[0] not in outside or len(outside) < SPIKES_MINIMUM
