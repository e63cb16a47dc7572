"""Detection while a run goes on: one window at a time, in memory that does not grow.

A worker that was started again rebuilds the detector by feeding it the journal's samples, with the notices, from the
first one: `feed` is deterministic and depends on nothing but what it was given, and 36 h of windows take seconds.
"""

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from cliffwatch.detect.channel import Channel
from cliffwatch.detect.excursion import RATIO_MINIMUM, Evidence, Excursions
from cliffwatch.detect.finding import Baseline, Finding, Kind, Notice, Role, Sample, Series
from cliffwatch.detect.spans import BLOCK, FAST, HOUR_BLOCKS, NOTICE_MASK, WARM_UP, log_ratio
from cliffwatch.detect.spikes import Spikes
from cliffwatch.detect.spread import middle
from cliffwatch.detect.steps import SpanStatistics, find_step, is_gradual

#: Phases in which nothing is judged.
UNJUDGED = frozenset({"prepare", "warm_up", "cool_down"})
#: The quantile that findings are about, where it is there: what comes first.
PREFERRED_QUANTILES = (0.99, 0.999, 0.95, 0.9, 0.5, 0.9999)
#: Windows after a finding in which its level settles and nothing else is judged.
SETTLING = 60
#: A daily swing, from its middle, that is healthy.
SWING = 0.1
#: Drift is told above this ratio to the baseline, which a daily swing does not reach, plus the run's own noise.
DRIFT_RATIO = 1.235
DRIFT_SIGNIFICANCE = 2.0
#: Or when it rose within hours by more than a daily swing does, plus this and the run's own noise.
DRIFT_MARGIN = 0.03
DRIFT_SIGNIFICANCE_BEFORE = 3.0
#: What is added when the device is measured and has not risen.
DRIFT_CONTRADICTED = 1.15
#: Spans of the drift detector: blocks whose median is the level now, and hours' worth before it (0: the baseline).
DRIFT_SPANS = ((60, 0), (120, 0), (60, 2), (60, 3), (60, 4), (60, 6), (60, 8))
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
        wanted = list(series)
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
            evidence = self._evidence(8 * BLOCK)
            judge.statistics.update(channel, evidence.more_load or evidence.contradicts)
            yield from self._end(judge, sample)
        if self._window - judge.found_window < SETTLING and judge.active is not None:
            return
        sigma = channel.fast_sigma()
        height = judge.excursions.follow(deviation, sigma)
        if height is not None:
            evidence = self._evidence(min(judge.excursions.windows, FAST), judge.excursions.windows)
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
        if self._evidence(FAST).more_load:
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
        if train is None or (judge.channel.windows < WARM_UP and not judge.channel.declared):
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
        shortest = 0 if channel.declared or channel.windows >= WARM_UP + HOUR_BLOCKS * BLOCK else 30

        def may_fire(span: int, height: float) -> bool:
            if span < shortest or self._more_load(span):
                return False
            if height > judge.excursions.enter and not judge.excursions.is_open:
                return False
            longest = judge.excursions.longest(height, 0.6 * height if devices else None)
            return span * BLOCK >= 1.5 * min(longest, 40 * BLOCK)

        step = find_step(judge.statistics, devices, 1.0 if judge.active is None else 1.4, may_fire)
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
        assert channel.baseline is not None
        base = math.log(channel.baseline.level) if judge.floor is None else judge.floor
        short = judge.statistics.sigma(20)
        if short is None:
            return
        for now, hours in DRIFT_SPANS:
            blocks = channel.last_blocks(now)
            if len(blocks) < now:
                return
            noise = 1.3 * short * (20 / now) ** 0.5
            rise, needed = middle(blocks) - base, log_ratio(DRIFT_RATIO) + DRIFT_SIGNIFICANCE * noise
            if hours:
                before = channel.last_blocks(2 * HOUR_BLOCKS, skip=(hours - 1) * HOUR_BLOCKS + HOUR_BLOCKS // 2)
                if len(before) < HOUR_BLOCKS:
                    continue
                base_then = max(base, middle(before))
                rise = middle(blocks) - base_then
                swing = 2 * SWING * math.sin(math.pi * hours / 24)
                needed = log_ratio(1 + swing) + DRIFT_MARGIN + DRIFT_SIGNIFICANCE_BEFORE * noise
            devices = self._risen_devices(now, rise)
            if self._devices and not devices:
                needed += log_ratio(DRIFT_CONTRADICTED)
            if rise < needed:
                continue
            rise = middle(blocks) - base
            judge.floor = base + rise
            if judge.active is not None:
                return
            judge.healthy = base
            onset = sample.end - 4 * HOUR_BLOCKS * BLOCK * self._window_seconds
            judge.active = Finding(
                Kind.DRIFT, onset, channel.series.name, math.exp(base), math.exp(base + rise), math.exp(rise),
                0.8 if devices else 0.5, sample.end, corroborated_by=tuple(devices),
            )  # fmt: skip
            yield judge.active
            return

    def _risen_devices(self, span: int, rise: float) -> list[str]:
        """The devices whose last `span` blocks are above their baseline by a share of `rise`."""
        risen = []
        for name in self._devices:
            device = self._channels[name]
            blocks = device.last_blocks(span)
            if device.baseline is not None and len(blocks) == span:
                moved = middle(blocks) - math.log(device.baseline.level)
                if moved > max(log_ratio(1.08), 0.25 * rise):
                    risen.append(name)
        return risen

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

    def _evidence(self, windows: int, since: int = 0) -> Evidence:
        """What the last `windows` say; load is compared with what it was before the last `since`."""
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
            before = channel.last_blocks(20, skip=max(windows, since) // BLOCK + 1)
            if level is not None and channel.usual is not None:
                usual = middle(before) if len(before) >= 10 else channel.usual
                rate, rate_sigma = level - usual, channel.fast_sigma()
        device, device_sigma = best if best is not None else (None, 0.0)
        return Evidence(device, device_sigma, rate, rate_sigma, tuple(names))

    def _deviation(self, name: str) -> float:
        usual = self._channels[name].usual
        return self._present.get(name, -math.inf) - usual if usual is not None else -math.inf

    def _more_load(self, span: int) -> bool:
        """Whether the client asked for more in the last `span` blocks than just before, which explains a rise."""
        if self._rate is None:
            return False
        channel = self._channels[self._rate]
        before, now = channel.last_blocks(20, skip=span), channel.last_blocks(span)
        if len(before) < 10:
            return False
        sigma = self._statistics[self._rate].sigma(span) or channel.fast_sigma()
        return middle(now) - middle(before) > max(log_ratio(1.04), 2 * sigma)

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
        """Degradation ratios by (series name, span): median level of a `fast`, `slow`, `drift` span / baseline."""
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
