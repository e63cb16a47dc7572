"""Device and rate series beside a client's latency: whether devices slowed down with it, or load increased."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from cliffwatch.analysis.finding import Finding, FindingKind, Role
from cliffwatch.analysis.online.channel import Channel
from cliffwatch.analysis.online.excursion import ExcursionEvidence
from cliffwatch.analysis.online.steps import SpanStatistics
from cliffwatch.analysis.run_arrays import Array
from cliffwatch.analysis.span_lengths import BLOCK, FAST, HOUR_BLOCKS, log_ratio
from cliffwatch.analysis.spread import middle
from cliffwatch.analysis.thresholds import (
    AMPLIFIED,
    AMPLIFIED_SIGMAS,
    BURST_SHARE,
    BURST_SIGMAS,
    BUSY_SIGMAS,
    DEVICE_MOVED,
    DEVICE_SIGMAS,
    DRIFT_DEVICE_MOVED,
    DRIFT_DEVICE_SHARE,
    LEVEL_MOVED,
    LOAD_BEFORE_BLOCKS,
    LOAD_BEFORE_MINIMUM,
    MORE_LOAD,
    MORE_LOAD_SIGMAS,
    WINDOW_ENOUGH,
    WINDOW_MOVED,
    WINDOW_SHARE,
    WINDOW_SIGMAS,
)


class CorrelatedSeries:
    """The device and rate channels of a run."""

    def __init__(self, channels: Sequence[Channel]) -> None:
        self.devices = {one.series.name: one for one in channels if one.series.role is Role.DEVICE_LATENCY}
        self._amplifications = [one for one in channels if one.series.role is Role.WRITE_AMPLIFICATION]
        self._rate = next((one for one in channels if one.series.role is Role.RATE), None)
        self.statistics = {name: SpanStatistics() for name in self.devices}
        self._rate_statistics = SpanStatistics()

    def named(self, names: Sequence[str]) -> list[Channel]:
        """Device channels of these names; other series are not devices."""
        return [self.devices[name] for name in names if name in self.devices]

    def end_block(self, channel: Channel) -> None:
        """Update the statistics after each block of a device or rate channel."""
        name = channel.series.name
        if name in self.statistics:
            self.statistics[name].update(channel)
        elif channel is self._rate:
            self._rate_statistics.update(channel)

    def discard_recent(self) -> None:
        for statistics in (*self.statistics.values(), self._rate_statistics):
            statistics.discard_recent()

    def take_out(self, windows: int) -> None:
        """Exclude the last `windows`, an excursion of the client, from the device channels as from the client's."""
        for name, channel in self.devices.items():
            count = channel.take_out(windows)
            self.statistics[name].forget_since(channel.block_count - count)

    def evidence(self, windows: int, since: int, present: Mapping[str, float]) -> ExcursionEvidence:
        """Evidence from devices and load, over the last `windows`, on a rise that began `since` windows ago. `present`:
        the last window's levels."""
        device: float | None = None
        device_sigma = 0.0
        names = []
        for name, channel in self.devices.items():
            level = channel.level(windows)
            if level is None or channel.recent_level is None or name not in present:
                continue
            moved, sigma = level - channel.recent_level, channel.fast_sigma()
            if device is None or moved > device:
                device, device_sigma = moved, sigma
            if moved > max(log_ratio(DEVICE_MOVED), DEVICE_SIGMAS * sigma):
                names.append(name)
        rate, rate_sigma = None, 0.0
        if self._rate is not None and self._rate.recent_level is not None:
            level = self._rate.level(windows)
            before = self._rate.last_blocks(LOAD_BEFORE_BLOCKS, skip=max(windows, since) // BLOCK + 1)
            recent = middle(before) if len(before) >= LOAD_BEFORE_MINIMUM else self._rate.recent_level
            if level is not None:
                rate, rate_sigma = level - recent, self._rate.fast_sigma()
        return ExcursionEvidence(device, device_sigma, rate, rate_sigma, tuple(names), self.amplified(windows, since))

    def amplified(self, windows: int, since: int) -> float | None:
        """Largest rise (a logarithm) of a drive's write amplification, if it is more than noise: the last `windows`
        against the time before a rise that began `since` windows ago. None where there is none."""
        rises = []
        for channel in self._amplifications:
            before = channel.last_blocks(LOAD_BEFORE_BLOCKS, skip=max(windows, since) // BLOCK + 1)
            level = channel.level(windows)
            if level is not None and len(before) >= LOAD_BEFORE_MINIMUM:
                rise = level - middle(before)
                if rise > max(log_ratio(AMPLIFIED), AMPLIFIED_SIGMAS * channel.fast_sigma()):
                    rises.append(rise)
        return max(rises, default=None)

    def more_load(self, span: int) -> bool:
        """Whether the rate was higher in the last `span` blocks than before, so that load explains a rise."""
        if self._rate is None:
            return False
        before, now = self._rate.last_blocks(LOAD_BEFORE_BLOCKS, skip=span), self._rate.last_blocks(span)
        if len(before) < LOAD_BEFORE_MINIMUM:
            return False
        sigma, recent = self._rate_statistics.sigma(span) or self._rate.fast_sigma(), middle(before)
        if middle(now) - recent > max(log_ratio(LEVEL_MOVED), MORE_LOAD_SIGMAS * sigma):
            return True
        # A burst that is longer than the span has raised the blocks just before it, too.
        earlier = self._rate.last_blocks(LOAD_BEFORE_BLOCKS, skip=HOUR_BLOCKS)
        needed = max(log_ratio(MORE_LOAD), MORE_LOAD_SIGMAS * sigma)
        if len(earlier) >= LOAD_BEFORE_MINIMUM and middle(now) - middle(earlier) > needed:
            return True
        # A burst that was over before the span's half would still have raised its share of the blocks.
        busy = now - recent > max(log_ratio(MORE_LOAD), BURST_SIGMAS * self._rate.fast_sigma())
        return float(busy.mean()) > BURST_SHARE

    def is_busy(self) -> bool:
        """Whether load is higher than in the hours before, also in a burst that has gone on for long."""
        if self._rate is None or self._rate.recent_level is None:
            return False
        level = self._rate.level(FAST)
        return level is not None and level - self._rate.recent_level > max(
            log_ratio(MORE_LOAD), BUSY_SIGMAS * self._rate.fast_sigma()
        )

    def is_device_raised(self, present: Mapping[str, float], deviation: float) -> bool:
        """Whether a device was slower in the last window, by more than its noise and by a share of the client's
        `deviation`."""
        for name, channel in self.devices.items():
            level = present.get(name)
            if level is None or channel.recent_level is None:
                continue
            noise = WINDOW_SIGMAS * channel.window_sigma()
            needed = max(log_ratio(WINDOW_MOVED), noise, min(WINDOW_SHARE * deviation, log_ratio(WINDOW_ENOUGH)))
            if level - channel.recent_level > needed:
                return True
        return False

    def trajectories(self, ends: Array) -> dict[str, Array]:
        """Medians of half an hour of each device, as logarithms, interpolated at the times `ends`."""
        found = {}
        for name, channel in self.devices.items():
            if len(channel.halves) >= len(ends) // 2:
                _, times, levels = np.array(channel.halves).T
                found[name] = np.asarray(np.interp(ends, times, levels))
        return found

    def risen(self, span: int, rise: float, share: float = DRIFT_DEVICE_SHARE) -> tuple[str, ...]:
        """Devices whose last `span` blocks are above their baseline by at least `share` of `rise`."""
        names = []
        for name, channel in self.devices.items():
            blocks = channel.last_blocks(span)
            if channel.baseline is not None and len(blocks) == span:
                moved = middle(blocks) - math.log(channel.baseline.level)
                if moved > max(log_ratio(DRIFT_DEVICE_MOVED), share * rise):
                    names.append(name)
        return tuple(names)

    def goes_on(self, finding: Finding, rise: float) -> bool:
        """Whether a drift goes on in a device that showed its rise (a logarithm), although the client eased."""
        risen = self.risen(HOUR_BLOCKS, rise) if finding.kind is FindingKind.DRIFT else ()
        return not set(risen).isdisjoint(finding.corroborated_by)
