"""Detection while a run goes on: one window at a time, in memory that does not grow.

A worker that was started again rebuilds the detector by feeding it the journal's samples, with the notices, from the
first one: `feed` is deterministic and depends on nothing but what it was given, and 36 h of windows take seconds.
"""

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from cliffwatch.detect.channel import Channel
from cliffwatch.detect.excursion import RATIO_MINIMUM, Evidence, Excursions
from cliffwatch.detect.finding import Baseline, Finding, Kind, Notice, Role, Sample, Series
from cliffwatch.detect.spans import BLOCK, FAST, HOUR_BLOCKS, NOTICE_MASK, WARM_UP, log_ratio
from cliffwatch.detect.spikes import Spike, Spikes
from cliffwatch.detect.spread import middle
from cliffwatch.detect.steps import SpanStatistics, find_step, is_gradual

#: Phases in which nothing is judged.
UNJUDGED = frozenset({"prepare", "warm_up", "cool_down"})
#: The quantile that findings are about, where it is there: what comes first.
PREFERRED_QUANTILES = (0.99, 0.999, 0.95, 0.9, 0.5, 0.9999)
#: Windows after a finding in which its level settles and nothing else is judged.
SETTLING = 60
DRIFT_RATIO = 1.24
RATIO_SPANS = {"fast": BLOCK, "slow": 180, "drift": 720}


class Judge:
    """What is judged of one latency series: its excursions, steps, drift and spikes, and what was found last."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.excursions = Excursions()
        self.spikes = Spikes()
        self.statistics = SpanStatistics()
        self.active: Finding | None = None
        self.healthy = 0.0
        self.found_window = 0
        self.floor: float | None = None
        self.train: Finding | None = None
        self.train_gap = 0
        self.train_last = 0


class OnlineDetector:
    """`series`: every series that samples may hold a value of; others are ignored. `window_seconds` is their length."""

    def __init__(self, series: Sequence[Series], window_seconds: float) -> None:
        self._window_seconds = window_seconds
        wanted = [one for one in series]
        self._channels = {one.name: Channel(one) for one in wanted}
        self._devices = [one.name for one in wanted if one.role is Role.DEVICE_LATENCY]
        self._rate = next((one.name for one in wanted if one.role is Role.RATE), None)
        self._judges = [Judge(self._channels[name]) for name in primary_series(wanted)]
        self._statistics = {name: SpanStatistics() for name in [*self._devices, *([self._rate] if self._rate else [])]}
        self._window = 0
        self._masked_until = 0
        self._ends: deque[float] = deque(maxlen=720)
        self._present: dict[str, float] = {}

    def notice(self, notice: Notice) -> None:
        """Tell of a restart or the like, before the sample in which it happened is fed."""
        self._masked_until = self._window + NOTICE_MASK

    def feed(self, sample: Sample) -> list[Finding]:
        """Findings that are new with this sample, and new versions of earlier ones (same series, kind and onset)."""
        self._window += 1
        self._ends.append(sample.end)
        if sample.phase in UNJUDGED or self._window <= self._masked_until:
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
            if channel.block_count != blocks and name in self._statistics:
                self._statistics[name].update(channel)
        found: list[Finding] = []
        for judge in self._judges:
            if judge.channel.series.name in self._present and judge.channel.usual is not None:
                found += self._judge(judge, sample)
        return found

    def _judge(self, judge: Judge, sample: Sample) -> Iterator[Finding]:
        channel = judge.channel
        level = self._present[channel.series.name]
        assert channel.usual is not None
        deviation = level - channel.usual
        is_block = channel.windows % BLOCK == 0
        if is_block:
            judge.statistics.update(channel)
            yield from self._end(judge, sample)
        if self._window - judge.found_window < SETTLING and judge.active is not None:
            return
        sigma = channel.fast_sigma()
        height = judge.excursions.follow(deviation, sigma)
        if height is not None:
            evidence = self._evidence(min(judge.excursions.windows, FAST))
            factor = 1.0 if judge.active is None else 2.0
            if judge.excursions.is_change(height / factor, sigma, evidence, channel.windows, channel.declared):
                yield self._changed(judge, sample, height, judge.excursions.windows, evidence, None)
                return
        yield from self._spikes(judge, sample, deviation)
        if is_block and (height is None or height < log_ratio(RATIO_MINIMUM)):
            yield from self._slow(judge, sample)

    def _spikes(self, judge: Judge, sample: Sample, deviation: float) -> Iterator[Finding]:
        raised = any(
            self._deviation(name) > max(log_ratio(1.15), 3.5 * self._channels[name].window_sigma())
            for name in self._devices
        )
        if self._more_load():
            judge.spikes.forget()
            return
        spike = judge.spikes.follow(self._window, sample.start, deviation, judge.channel.window_sigma(), raised)
        if judge.train is not None:
            if spike is not None:
                judge.train_last = self._window
            elif self._window - judge.train_last > max(60, 10 * judge.train_gap):
                ended = replace(
                    judge.train, until=sample.end - (self._window - judge.train_last) * self._window_seconds
                )
                judge.train = None
                yield ended
            return
        if spike is None:
            return
        train = judge.spikes.train(spike)
        if train is None or judge.channel.windows < WARM_UP and not judge.channel.declared:
            return
        judge.train_gap = (train[-1].window - train[0].window) // (len(train) - 1)
        judge.train_last = self._window
        usual = judge.channel.usual or 0.0
        level = usual + sorted(one.height for one in train)[len(train) // 2]
        base = self._base(judge)
        corroborated = all(one.corroborated for one in train)
        judge.train = Finding(
            Kind.SPIKES, train[0].start, judge.channel.series.name, math.exp(base), math.exp(level),
            math.exp(level - base), 0.9 if corroborated else 0.6, sample.end,
            corroborated_by=tuple(self._devices) if corroborated else (),
        )  # fmt: skip
        yield judge.train

    def _slow(self, judge: Judge, sample: Sample) -> Iterator[Finding]:
        channel = judge.channel
        devices = {name: self._statistics[name] for name in self._devices}
        rate = self._statistics[self._rate] if self._rate else None
        shortest = 0 if channel.declared or channel.windows >= WARM_UP + HOUR_BLOCKS * BLOCK else 30
        step = find_step(judge.statistics, devices, rate, 1.0 if judge.active is None else 1.4, shortest)
        if step is not None and not is_gradual(channel):
            evidence = Evidence(None, 0.0, None, 0.0, step.device_names)
            confidence = 0.9 if step.corroborated else 0.6 if not step.has_device else 0.5
            yield self._changed(judge, sample, step.height, step.span * BLOCK, evidence, confidence)
            return
        if channel.block_count % 5 or channel.baseline is None:
            return
        yield from self._drift(judge, sample)

    def _drift(self, judge: Judge, sample: Sample) -> Iterator[Finding]:
        channel = judge.channel
        hour = channel.last_blocks(HOUR_BLOCKS)
        if len(hour) < HOUR_BLOCKS or channel.baseline is None:
            return
        base = math.log(channel.baseline.level) if judge.floor is None else judge.floor
        rise = middle(hour) - base
        sigma = judge.statistics.sigma(60) or 0.1
        needed = log_ratio(DRIFT_RATIO) + 1.0 * min(sigma, 0.05)
        devices = []
        for name in self._devices:
            device = self._channels[name]
            blocks = device.last_blocks(HOUR_BLOCKS)
            if device.baseline is not None and len(blocks) == HOUR_BLOCKS:
                moved = middle(blocks) - math.log(device.baseline.level)
                if moved > max(log_ratio(1.08), 0.25 * rise):
                    devices.append(name)
        if self._devices and not devices:
            needed = log_ratio(1.4)
        if rise < needed:
            return
        judge.floor = middle(hour)
        judge.healthy = base
        onset = sample.end - 4 * 3600 * self._window_seconds / 10
        judge.active = judge.active or Finding(
            Kind.DRIFT, onset, channel.series.name, math.exp(base), math.exp(base + rise), math.exp(rise),
            0.8 if devices else 0.5, sample.end, corroborated_by=tuple(devices),
        )  # fmt: skip
        yield judge.active

    def _changed(
        self, judge: Judge, sample: Sample, height: float, windows: int, evidence: Evidence, confidence: float | None
    ) -> Finding:
        channel = judge.channel
        usual = channel.usual or 0.0
        base = self._base(judge)
        kind = Kind.CLIFF if height >= log_ratio(1.5) else Kind.STEP
        level = usual + height
        if confidence is None:
            confidence = 0.95 if evidence.corroborates(height) else 0.6 if evidence.device is None else 0.5
        ends = list(self._ends)
        onset = ends[max(0, len(ends) - windows)] - self._window_seconds
        names = evidence.device_names
        finding = Finding(
            kind, onset, channel.series.name, math.exp(base), math.exp(level), math.exp(level - base), confidence,
            sample.end, corroborated_by=names,
        )  # fmt: skip
        if judge.active is None:
            judge.healthy = usual
        judge.active, judge.found_window = finding, self._window
        judge.excursions.forget()
        judge.spikes.forget()
        judge.statistics.discard_recent()
        for name, other in self._channels.items():
            other.begin_regime(windows)
            if name in self._statistics:
                self._statistics[name].discard_recent()
        judge.floor = level
        return finding

    def _end(self, judge: Judge, sample: Sample) -> Iterator[Finding]:
        """A change that has come back is over."""
        if judge.active is None or self._window - judge.found_window < 30:
            return
        recent = judge.channel.last_blocks(10)
        if len(recent) < 10:
            return
        jump = math.log(judge.active.level) - judge.healthy
        if middle(recent) - judge.healthy > 0.3 * jump:
            return
        until = sample.end - 5 * BLOCK * self._window_seconds
        ended = replace(judge.active, until=until)
        windows = round((until - ended.onset) / self._window_seconds)
        if windows < 4 * HOUR_BLOCKS * BLOCK:
            judge.excursions.learn(windows, jump, jump)
            judge.statistics.learn(jump, windows // BLOCK)
        judge.active = None
        judge.floor = None
        judge.channel.begin_regime(5 * BLOCK)
        yield ended

    def _evidence(self, windows: int) -> Evidence:
        best: tuple[float, float] | None = None
        names = []
        for name in self._devices:
            channel = self._channels[name]
            level = channel.level(windows)
            if level is None or channel.usual is None or name not in self._present:
                continue
            moved = level - channel.usual
            if best is None or moved > best[0]:
                best = (moved, channel.fast_sigma())
            if moved > max(log_ratio(1.12), 4 * channel.fast_sigma()):
                names.append(name)
        rate, rate_sigma = None, 0.0
        if self._rate is not None:
            channel = self._channels[self._rate]
            level = channel.level(windows)
            if level is not None and channel.usual is not None:
                rate, rate_sigma = level - channel.usual, channel.fast_sigma()
        device, device_sigma = best if best is not None else (None, 0.0)
        return Evidence(device, device_sigma, rate, rate_sigma, tuple(names))

    def _deviation(self, name: str) -> float:
        usual = self._channels[name].usual
        return self._present.get(name, -math.inf) - usual if usual is not None else -math.inf

    def _more_load(self) -> bool:
        """Whether the last minutes had more load than usual, which explains spikes."""
        if self._rate is None:
            return False
        channel = self._channels[self._rate]
        level = channel.level(FAST)
        sigma = channel.fast_sigma()
        return (
            level is not None and channel.usual is not None and level - channel.usual > max(log_ratio(1.07), 5 * sigma)
        )

    def _base(self, judge: Judge) -> float:
        """What a ratio is told against: the frozen baseline, or what is usual while there is none."""
        baseline = judge.channel.baseline
        if baseline is not None:
            return math.log(baseline.level)
        return judge.channel.usual or 0.0

    @property
    def baselines(self) -> Mapping[str, Baseline]:
        """What healthy was, by series name, once it is known; a later one replaces it only where the run improved."""
        return {name: channel.baseline for name, channel in self._channels.items() if channel.baseline is not None}

    @property
    def ratios(self) -> Mapping[tuple[str, str], float]:
        """Degradation ratios by (series name, span): the median level of a `fast`, `slow` or `drift` span / baseline."""
        ratios = {}
        for name, channel in self._channels.items():
            if channel.baseline is None or channel.series.role not in (Role.LATENCY, Role.DEVICE_LATENCY):
                continue
            for span, windows in RATIO_SPANS.items():
                level = channel.level(windows)
                if level is not None:
                    ratios[name, span] = math.exp(level) / channel.baseline.level
        return ratios


def primary_series(series: Sequence[Series]) -> list[str]:
    """The latency series that findings are about: one quantile of each operation."""
    operations: dict[str | None, list[Series]] = {}
    for one in series:
        if one.role is Role.LATENCY:
            operations.setdefault(one.operation, []).append(one)

    def preference(one: Series) -> int:
        known = one.quantile in PREFERRED_QUANTILES
        return PREFERRED_QUANTILES.index(one.quantile) if known and one.quantile is not None else 9

    return [min(group, key=preference).name for group in operations.values()]
