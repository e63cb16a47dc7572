"""Online detector of a run: one window at a time, in bounded memory.

A restarted worker rebuilds the detector by feeding it the journal's samples, with the notices, from the first one:
`feed` is deterministic and depends on nothing but its input, and 36 h of windows take seconds.
"""

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from cliffwatch.analysis.cliff import cliff_height, confidence_of, is_cliff, sudden_kind
from cliffwatch.analysis.finding import SUDDEN, Baseline, Finding, FindingKind, Role, Sample, Series
from cliffwatch.analysis.online.channel import Channel
from cliffwatch.analysis.online.correlated import CorrelatedSeries
from cliffwatch.analysis.online.drift import find_drift, find_joint_drift
from cliffwatch.analysis.online.excursion import ExcursionEvidence
from cliffwatch.analysis.online.ratios import ratios_of
from cliffwatch.analysis.online.series_judge import Judge, recovery_of
from cliffwatch.analysis.online.shape import is_gradual, sudden_since
from cliffwatch.analysis.online.spike_trains import Present, follow_spikes
from cliffwatch.analysis.online.steps import find_step, windows_since
from cliffwatch.analysis.online.together import joins_another, take_in_affected, together_with
from cliffwatch.analysis.primary_series import primary_series, rank_of
from cliffwatch.analysis.sizes import Sizing
from cliffwatch.analysis.span_lengths import BLOCK, FAST, HOUR, HOUR_BLOCKS, STEP_SPANS, log_ratio
from cliffwatch.analysis.spread import middle
from cliffwatch.analysis.thresholds import (
    AFTER_LOAD,
    ALONE_WINDOWS,
    CLIFF_CONFIDENCE,
    EXCURSION_WINDOWS,
    FURTHER_EXCURSION,
    FURTHER_STEP,
    LONG_SPAN,
    RECOVERY_WINDOWS,
    RETURNED_BLOCKS,
    RETURNED_PART,
    SETTLING,
    SEVERE_RATIO,
    UNLEARNED,
    WARM_UP,
    WARMING_SPAN,
)
from cliffwatch.model.phase import Phase

#: Ends of windows that are stored; and blocks between two searches for drift, which takes hours.
_ENDS_KEPT, _DRIFT_STRIDE = 720, 5


class OnlineDetector:
    """Online detector of a run. `series`: every series of the samples; others are ignored. `window_seconds`: length of
    a sample. `notices`: those that are known before the first sample."""

    def __init__(self, series: Sequence[Series], window_seconds: float) -> None:
        self._window_seconds = window_seconds
        self._channels = {one.name: Channel(one) for one in series}
        self._correlated = CorrelatedSeries(list(self._channels.values()))
        primary = primary_series(series)
        latencies = [one.name for one in series if one.role in (Role.LATENCY, Role.DEVICE_LATENCY)]
        self._judges = [Judge(self._channels[name], name in primary) for name in dict.fromkeys((*primary, *latencies))]
        #: Number of windows so far.
        self._window = 0
        self._explained_until = 0
        #: Up to this window, a burst of load is in the hour before.
        self._burst_until = 0
        self._ends: deque[float] = deque(maxlen=_ENDS_KEPT)
        self._present: dict[str, float] = {}
        #: Earliest onset: none is before the first sample, or in the declared baseline phase.
        self._earliest = math.inf
        self._is_baseline = False

    def feed(self, sample: Sample, is_judged: bool) -> list[Finding]:
        """Add a sample; returns new findings, and new versions of earlier ones (same series, kind and onset)."""
        self._window += 1
        self._ends.append(sample.end)
        self._follow_phase(sample)
        if not is_judged:
            for judge in self._judges:
                judge.found_window += 1  # windows that are not judged are no time to settle
            return []
        self._present = {}
        for name, value in sample.values.items():
            channel = self._channels.get(name)
            if channel is None:
                continue
            blocks = channel.block_count
            level = channel.add(value, sample.start, sample.end, sample.phase)
            if level is None:
                continue
            self._present[name] = level
            if channel.block_count != blocks:
                self._correlated.end_block(channel)
        for judge in self._judges:
            if judge.sizing is not None:
                for sizing in judge.sizings:
                    sizing.add(self._present)
                take_in_affected(judge, self._judges, self._window)
        found: list[Finding] = []
        for judge in self._judges:
            level = self._present.get(judge.name)
            if level is not None and judge.channel.recent_level is not None:
                follow = self._primary if judge.is_primary else self._other
                found += follow(judge, sample, level - judge.channel.recent_level)
        return found

    def _follow_phase(self, sample: Sample) -> None:
        was_baseline, self._is_baseline = self._is_baseline, sample.phase == Phase.BASELINE
        self._earliest = sample.end if self._is_baseline else min(self._earliest, sample.start)
        if was_baseline and not self._is_baseline:
            # A rise during the declared baseline is healthy, and no part of a change after it.
            for judge in self._judges:
                judge.excursions.end()

    @property
    def active(self) -> list[Finding]:
        """Active findings, each with its current size."""
        changes = [finding for judge in self._judges for finding in judge.findings]
        trains = [judge.sized_train() for judge in self._judges if judge.train is not None]
        return [*changes, *trains]

    def _primary(self, judge: Judge, sample: Sample, deviation: float) -> Iterator[Finding]:
        channel = judge.channel
        is_block = channel.windows % BLOCK == 0
        if is_block:
            evidence = self._evidence(STEP_SPANS[0] * BLOCK)
            if evidence.more_load:
                self._burst_until = self._window + HOUR
            if evidence.more_load or self._correlated.is_busy():
                self._explained_until = self._window + AFTER_LOAD
            is_busy = self._window < self._explained_until
            judge.statistics.update(channel, is_busy or evidence.contradicts)
            if judge.active is None and not is_busy:
                judge.statistics.pair(self._correlated.statistics)
            yield from self._end(judge, sample)
        if judge.active is not None and self._window - judge.found_window <= SETTLING:
            if self._window - judge.found_window == SETTLING:
                yield from self._settled(judge)
            return
        if self._window <= judge.quiet_until:
            return
        found = self._absolute(judge, sample)
        if found is None:
            yield from self._relative(judge, sample, deviation, is_block)
        else:
            yield found

    def _relative(self, judge: Judge, sample: Sample, deviation: float, is_block: bool) -> Iterator[Finding]:
        """Detect a change relative to the run's own noise."""
        channel = judge.channel
        sigma = channel.fast_sigma()
        at = sample.start / self._window_seconds
        height = judge.excursions.follow(at, deviation + channel.below, sigma)
        channel.is_held = 0 < judge.excursions.windows < HOUR
        channel.spike_height = judge.spike_height()
        if judge.excursions.returned:
            self._take_out(judge, judge.excursions.returned)
        if height is not None:
            height -= channel.below
            evidence = self._evidence(min(judge.excursions.windows, FAST), judge.excursions.windows)
            is_further = self._has_degraded()
            factor = FURTHER_EXCURSION if is_further else 1.0
            is_young = channel.declared and not is_further and judge.statistics.sigma(STEP_SPANS[0]) is None
            is_change = (not is_further or judge.excursions.windows >= UNLEARNED) and judge.excursions.is_change(
                height / factor, sigma, evidence, channel.windows, channel.declared, is_young
            )
            is_new = judge.excursions.is_amplified_anew(evidence)
            if is_change and (is_new or not judge.is_within_baseline(height)):
                is_sure, names = is_new or evidence.corroborates(height, sigma), evidence.device_names
                confidence = CLIFF_CONFIDENCE if is_sure else confidence_of(False, evidence.device is not None)
                yield from self._found(judge, sample, height, judge.excursions.windows, names, confidence)
                return
        if not judge.is_without_spikes(deviation):
            yield from follow_spikes(judge, deviation, self._present_for_spikes(sample, deviation))
        if (
            is_block
            and not judge.excursions.is_settling
            and not judge.excursions.returned
            and (height is None or not is_cliff(height, sigma))
        ):
            yield from self._slow(judge, sample)

    def _absolute(self, judge: Judge, sample: Sample) -> Finding | None:
        """Detect a rise that no noise explains, in a run without an active change, or far beyond the active one."""
        more_load = self._window < self._explained_until
        level = self._present[judge.name]
        levels = [math.log(one.active.level) for one in self._judges if one.is_primary and one.active is not None]
        is_first, degraded = partial(self._is_first, judge), max(levels, default=None)
        rise = judge.absolute.follow(judge.channel, level, self._correlated, more_load, is_first, degraded)
        if rise is None or (levels and judge.active is None):
            return None
        height = cliff_height(rise.level - (judge.channel.recent_level or 0.0), judge.channel.fast_sigma())
        confidence = confidence_of(bool(rise.devices), bool(self._correlated.devices))
        finding = self._changed(judge, sample, height, rise.windows, rise.devices, confidence)
        if judge.active is not None:
            # The recent level may have risen with it.
            judge.healthy = judge.base()
        return finding

    def _is_first(self, judge: Judge) -> bool:
        """Whether a severe rise would be the run's first: without an active degradation or a similar past excursion."""
        return not self._has_degraded() and judge.excursions.longest(log_ratio(SEVERE_RATIO))[1] == 0

    def _present_for_spikes(self, sample: Sample, deviation: float) -> Present:
        more_load = self._correlated.is_busy() or self._evidence(FAST).more_load
        raised = self._correlated.is_device_raised(self._present, deviation)
        devices = tuple(self._correlated.devices)
        return Present(self._window, sample, self._window_seconds, more_load, raised, devices)

    def _take_out(self, judge: Judge, windows: int) -> None:
        """Remove a finished excursion from the data of the slow detectors."""
        if windows > EXCURSION_WINDOWS:
            return
        count = judge.channel.take_out(windows)
        judge.statistics.forget_since(judge.channel.block_count - count)
        self._correlated.take_out(windows)

    def _other(self, judge: Judge, sample: Sample, deviation: float) -> Iterator[Finding]:
        """Judge a secondary series, such as a device's: reported when it changes and no primary series does."""
        excursions = judge.excursions
        if judge.active is not None:
            if judge.channel.windows % BLOCK == 0:
                yield from self._end(judge, sample)
            return
        sigma = judge.channel.fast_sigma()
        height = excursions.follow(sample.start / self._window_seconds, deviation, sigma)
        if height is None or excursions.windows < ALONE_WINDOWS:
            return
        evidence = self._evidence(FAST, excursions.windows)
        if not excursions.is_change(height, sigma, evidence, judge.channel.windows, judge.channel.declared):
            return
        if self._has_degraded() or any(one.excursions.is_open for one in self._judges if one.is_primary):
            return
        yield self._changed(judge, sample, height, excursions.windows, (), confidence_of(False, True))

    def _slow(self, judge: Judge, sample: Sample) -> Iterator[Finding]:
        channel, devices = judge.channel, self._correlated.statistics
        at = sample.start / self._window_seconds
        is_further = self._has_degraded()
        shortest = 0 if channel.declared or channel.windows >= WARM_UP else WARMING_SPAN

        def may_fire(span: int, height: float) -> bool:
            if is_further and not is_cliff(height, channel.fast_sigma()):
                return False
            if span < shortest or self._correlated.more_load(span):
                return False
            excursions = judge.excursions
            if height > excursions.enter and not excursions.is_open:
                return False
            began = excursions.start if excursions.is_open else at - windows_since(channel, span)
            amplified = self._correlated.amplified(span * BLOCK, span * BLOCK)
            return excursions.is_outlasted(windows_since(channel, span), began, height, bool(devices), amplified)

        factor = FURTHER_STEP if is_further else 1.0
        step = find_step(judge.statistics, devices, factor, channel.resolution(), may_fire)
        if step is not None and not is_gradual(channel, self._correlated.named(step.device_names)):
            confidence, windows = confidence_of(step.corroborated, step.has_device), windows_since(channel, step.span)
            yield from self._found(judge, sample, step.height, windows, step.device_names, confidence)
        elif (
            channel.block_count % _DRIFT_STRIDE == 0
            and self._window >= self._burst_until
            and channel.baseline is not None
            and judge.active is None
        ):
            yield from self._drift(judge, sample)

    def _drift(self, judge: Judge, sample: Sample) -> Iterator[Finding]:
        base = judge.base() if judge.floor is None else judge.floor
        channel = judge.channel
        drift = find_drift(channel, base, judge.statistics.sigma(LONG_SPAN), self._correlated)
        since = None if drift is None else sudden_since(channel, self._correlated.named(drift.devices))
        if drift is not None and since is not None:
            # A step that was too small or too noisy to be found as one.
            height = middle(channel.last_blocks(since)) - (channel.recent_level or 0.0)
            confidence = confidence_of(bool(drift.devices), bool(self._correlated.devices))
            yield from self._found(judge, sample, height, since * BLOCK, drift.devices, confidence)
            return
        if drift is None and channel.halves and channel.halves[-1][1] > judge.course_end:
            judge.course_end = channel.halves[-1][1]
            drift = find_joint_drift(channel, base, self._correlated)
        if drift is None:
            return
        judge.healthy = base
        onset = max(self._earliest, sample.end - drift.blocks * BLOCK * self._window_seconds)
        judge.active = drift.finding(judge.name, base, onset, sample.end)
        judge.found_window = self._window
        judge.sizing = Sizing(FindingKind.DRIFT)
        judge.measure(judge.active, judge.sizing)
        yield judge.sized(judge.active)

    def _found(
        self, judge: Judge, sample: Sample, height: float, windows: int, names: tuple[str, ...], confidence: float
    ) -> Iterator[Finding]:
        """Raise a finding for an operation's change, unless the change belongs to an active finding."""
        if joins_another(judge, self._judges, self._window, windows):
            judge.quiet_until = self._window + SETTLING
        else:
            yield self._changed(judge, sample, height, windows, names, confidence)

    def _changed(
        self, judge: Judge, sample: Sample, height: float, windows: int, names: tuple[str, ...], confidence: float
    ) -> Finding:
        together = together_with(judge, self._judges, self._present, height, windows)
        owner = min([judge, *together], key=lambda one: rank_of(one.channel.series))
        if owner is not judge:
            # The operation that a client waits for is named, whichever of its parts was detected first.
            together = [judge, *(one for one in together if one is not owner)]
            height = (owner.channel.level(min(windows, HOUR)) or 0.0) - (owner.channel.recent_level or 0.0)
            judge = owner
        recent, base = judge.channel.recent_level or 0.0, judge.base()
        level = recent + height
        first = max(0, len(self._ends) - windows)
        judge.began_window = self._window - windows
        judge.amplified = self._correlated.amplified(min(windows, FAST), windows) or 0.0
        finding = Finding(
            sudden_kind(height, judge.channel.fast_sigma()),
            onset=max(self._earliest, self._ends[first] - self._window_seconds),
            series=judge.name,
            baseline=math.exp(base),
            level=math.exp(level),
            ratio=math.exp(level - base),
            confidence=confidence,
            detected=sample.end,
            corroborated_by=(*names, *(one.name for one in together)),
        )
        if judge.active is not None:
            judge.begin_within()
        judge.healthy = recent
        judge.active, judge.found_window, judge.floor = finding, self._window, level
        judge.sizing = Sizing(finding.kind)
        for one in (judge, *together):
            one.measure(finding, judge.sizing)
        take_in_affected(judge, self._judges, self._window)
        if judge.is_primary:
            self._correlated.discard_recent()
            # The recent level of each series is from now on its level since the change.
            for channel in self._channels.values():
                channel.begin_regime(windows)
        for one in self._judges if judge.is_primary else [judge]:
            one.save_state()
        for one in together:
            one.quiet_until = self._window + SETTLING
        return judge.sized(finding)

    def _settled(self, judge: Judge) -> Iterator[Finding]:
        """Update a change's size once its level has settled."""
        assert judge.active is not None
        if judge.sizing is not None and judge.active.kind in SUDDEN:
            height = math.log(judge.active.level) - judge.healthy
            for one in together_with(judge, self._judges, self._present, height, SETTLING):
                one.measure(judge.active, judge.sizing)
        if (finding := judge.settled()) is not None:
            yield finding

    def _end(self, judge: Judge, sample: Sample) -> Iterator[Finding]:
        """End an active finding whose change has come back."""
        if judge.active is None or self._window - judge.found_window < SETTLING // 2:
            return
        # What rises over hours wavers for minutes.
        blocks = HOUR_BLOCKS if judge.active.kind is FindingKind.DRIFT else RETURNED_BLOCKS
        recent = judge.channel.last_blocks(blocks)
        if len(recent) < blocks:
            return
        jump, present = math.log(judge.active.level) - judge.healthy, middle(recent)
        if present - judge.healthy > RETURNED_PART * jump or self._correlated.goes_on(judge.active, jump):
            return
        back = blocks // 2 * BLOCK
        until = sample.end - back * self._window_seconds
        ended = judge.sized(replace(judge.active, until=until))
        is_within = judge.end_within()
        yield ended
        if not self._has_degraded():
            for one in self._judges:
                one.restore_state()
            judge.floor = max(present, judge.base())
        windows = round((until - ended.onset) / self._window_seconds)
        judge.learn(ended.onset / self._window_seconds, windows, jump)
        judge.channel.begin_regime(back)
        if windows >= RECOVERY_WINDOWS and not is_within:
            yield recovery_of(ended, until, sample.end, present)

    def _has_degraded(self) -> bool:
        return any(one.active is not None for one in self._judges if one.is_primary)

    def _evidence(self, windows: int, since: int = 0) -> ExcursionEvidence:
        return self._correlated.evidence(windows, since, self._present)

    @property
    def baselines(self) -> Mapping[str, Baseline]:
        """Known baselines by series name; one is replaced only where the run improved."""
        return {name: channel.baseline for name, channel in self._channels.items() if channel.baseline is not None}

    @property
    def ratios(self) -> Mapping[tuple[str, str], float]:
        """Degradation ratios by (series name, span): median level of a `fast`, `slow`, `drift` span / baseline."""
        return ratios_of(self._channels.values())
