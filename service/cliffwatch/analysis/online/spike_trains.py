"""Spike trains while a run goes on: raise a finding, extend it by further spikes, and end it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cliffwatch.analysis.cliff import confidence_of
from cliffwatch.analysis.finding import Finding, FindingKind, Sample
from cliffwatch.analysis.online.series_judge import Judge
from cliffwatch.analysis.online.shape import is_gradual
from cliffwatch.analysis.online.spikes import Spike
from cliffwatch.analysis.sizes import Sizing
from cliffwatch.analysis.thresholds import (
    CLEARLY_GRADUAL,
    SPIKE_QUIET,
    SPIKE_WINDOWS,
    TRAIN_OVER_DISTANCES,
    TRAIN_OVER_WINDOWS,
    WARM_UP,
)


@dataclass(frozen=True, slots=True)
class Present:
    """The last window: its number and sample, whether more load explains its spikes, whether a device was slower."""

    window: int
    sample: Sample
    window_seconds: float
    more_load: bool
    is_device_raised: bool
    devices: tuple[str, ...]


def follow_spikes(judge: Judge, deviation: float, present: Present) -> Iterator[Finding]:
    """Judge the last window; yields the finding of a train of spikes that begins or ends. `deviation`: the window's
    deviation from the recent level of the judged series."""
    if present.more_load:
        judge.spikes.forget()
        return
    if judge.excursions.windows > SPIKE_WINDOWS:
        # A long rise that flickers is one rise, not spikes.
        judge.spikes.drop(present.window - judge.excursions.windows - SPIKE_QUIET)
        return
    height = None if judge.train is None else judge.train_height
    sigma, start = judge.channel.window_sigma(), present.sample.start
    spike = judge.spikes.follow(present.window, start, deviation, sigma, present.is_device_raised, height)
    if judge.train is not None:
        yield from _go_on(judge, judge.train, spike, present)
        return
    train = None if spike is None else judge.spikes.train(spike)
    if train is None or judge.active is not None:
        return
    if judge.excursions.is_open and train[0].window > present.window - 2 * SPIKE_WINDOWS:
        return
    if judge.channel.windows < WARM_UP and not judge.channel.declared:
        return
    # The recent level lags behind a level that rises all along, and any noise stands out from it.
    if is_gradual(judge.channel, factor=CLEARLY_GRADUAL):
        return
    yield _begin(judge, train, present)


def _go_on(judge: Judge, train: Finding, spike: Spike | None, present: Present) -> Iterator[Finding]:
    if spike is not None:
        judge.train_last = present.window
        _measure(judge, [spike])
    elif present.window - judge.train_last > max(TRAIN_OVER_WINDOWS, TRAIN_OVER_DISTANCES * judge.train_gap):
        quiet = (present.window - judge.train_last) * present.window_seconds
        judge.train = replace(train, until=present.sample.end - quiet)
        yield judge.sized_train()
        judge.train = None


def _begin(judge: Judge, train: Sequence[Spike], present: Present) -> Finding:
    judge.train_gap = (train[-1].window - train[0].window) // (len(train) - 1)
    judge.train_last = present.window
    base = judge.base()
    judge.train_height = sorted(one.height for one in train)[len(train) // 2]
    level = (judge.channel.recent_level or 0.0) + judge.train_height
    is_corroborated = all(one.corroborated for one in train)
    judge.train = Finding(
        FindingKind.SPIKES,
        onset=train[0].start,
        series=judge.name,
        baseline=math.exp(base),
        level=math.exp(level),
        ratio=math.exp(level - base),
        confidence=confidence_of(is_corroborated, False),
        detected=present.sample.end,
        corroborated_by=present.devices if is_corroborated else (),
    )
    judge.train_sizing = Sizing(FindingKind.SPIKES)
    baseline = judge.channel.baseline_before(judge.train.onset)
    if baseline is not None:
        judge.train_sizing.follow(baseline, ())
    _measure(judge, train)
    return judge.sized_train()


def _measure(judge: Judge, spikes: Sequence[Spike]) -> None:
    """Add further spikes to the sizes of a train."""
    assert judge.train_sizing is not None, "every train has one"
    for spike in spikes:
        judge.train_sizing.add({judge.name: (judge.channel.recent_level or 0.0) + spike.height})
