"""State of one series for the detectors: logarithms, blocks of windows, recent level, baseline."""

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cliffwatch.analysis.finding import Baseline, Role, Series
from cliffwatch.analysis.preprocessing import CoarseClock, block_level
from cliffwatch.analysis.sizes import RECENT_WINDOWS, band, baseline_of, before_rise, recent_baseline
from cliffwatch.analysis.span_lengths import (
    BLOCK,
    FAST,
    HALF_BLOCKS,
    HOUR,
    HOUR_BLOCKS,
    NOISE_FADES,
    REFERENCE_BLOCKS,
    SAME_MOMENT_SECONDS,
)
from cliffwatch.analysis.spread import Spread, middle
from cliffwatch.analysis.thresholds import BELOW_LEAST, DITHERED, IMPROVEMENT
from cliffwatch.model.phase import Phase

_RING = 640
_LOWEST_HOURS = 3
#: Cached, because it is compared at each window, and Python 3.11 takes longer for an enum's attribute than to compare.
_BASELINE = Phase.BASELINE.value
#: Last blocks whose median is the present level of a run that improves fast.
_LOCAL_BLOCKS = 20
#: Roles of series whose changes are reported with their sizes.
_REMEMBERED = frozenset({Role.LATENCY, Role.DEVICE_LATENCY})
#: Stored windows, medians of half an hour and deviations of windows; most windows of a declared baseline (8 h).
_RECENT, _HALVES_KEPT, _WINDOWS_KEPT, _PHASE_WINDOWS = 60, 96, 256, 8 * HOUR
#: Spread that is assumed where none is known (a logarithm); and least blocks for an update of the recent level.
_SIGMA_UNKNOWN, _REFERENCE_LEAST = 0.3, 3


@dataclass(frozen=True, slots=True, order=True)
class _Hour:
    """Median window of an hour (logarithm), and the band in which nine of ten of its windows were."""

    level: float
    start: float
    end: float
    low: float
    high: float


class Channel:
    """State of one series, in bounded memory. `add` adds a window's value.

    All levels are natural logarithms of the series' unit.
    """

    def __init__(self, series: Series) -> None:
        self.series = series
        self.windows = 0
        self.recent: deque[float] = deque(maxlen=_RECENT)
        #: Start and level of the last windows, before and after a change.
        self._starts: deque[float] = deque(maxlen=RECENT_WINDOWS + HOUR)
        self._levels: deque[float] = deque(maxlen=RECENT_WINDOWS + HOUR)
        self.block_count = 0
        #: Medians of half hours, each as (number of blocks up to its end, its end in seconds, median).
        self.halves: deque[tuple[int, float, float]] = deque(maxlen=_HALVES_KEPT)
        self.fast_spread = Spread()
        self.recent_level: float | None = None
        #: By how much the last minutes are below the recent level, as in a warm-up.
        self.below = 0.0
        self.regime = 0
        #: Whether the recent level is frozen, as it is during a rise that may be a change.
        self.is_held = False
        #: Rise of a window over the recent level (a logarithm) from which it is a spike, and is left out of its block.
        self.spike_height = math.inf
        self._block: list[float] = []
        self._ring: NDArray[np.float64] = np.zeros(2 * _RING)
        self._first: list[float] = []
        self._fast: list[float] = []
        self._window_spread = Spread(_WINDOWS_KEPT)
        self._hours: list[_Hour] = []
        self._hour_values: list[float] = []
        self._hour_start: float | None = None
        self._hours_seen = 0
        self._phase_values: list[float] = []
        self._phase_start = 0.0
        self.declared = False
        self.baseline: Baseline | None = None
        self._aside: tuple[Spread, Spread] | None = None
        self._clock = CoarseClock()

    def add(self, value: float, start: float, end: float, phase: str | None) -> float | None:
        """Add a window's value; returns its logarithm, or None for a value that cannot be a measurement."""
        level = self._logarithm(value)
        if level is None:
            return None
        self.windows += 1
        self.recent.append(level)
        if self.series.role in _REMEMBERED:
            self._starts.append(start)
            self._levels.append(level)
        if not self.declared:
            self._hour_values.append(level)
        if self.recent_level is None:
            self._first.append(level)
            if len(self._first) >= 2 * BLOCK:
                self.recent_level = middle(np.array(self._first))
                self._first = []
        elif not self.is_held:
            self._fast.append(level - self.recent_level)
            self._window_spread.add(level - self.recent_level)
            if len(self._fast) == FAST:
                self.fast_spread.add(sorted(self._fast)[FAST // 2])
                self._fast.clear()
        self._follow_phase(level, start, phase)
        if self._hour_start is None:
            self._hour_start = start
        self._block.append(level)
        if len(self._block) == BLOCK:
            self._end_block(end)
        return level

    def last_blocks(self, count: int, skip: int = 0) -> NDArray[np.float64]:
        """Last blocks in order, up to `count`, without the last `skip` and without those before the present regime."""
        return self._tail(max(0, min(count, self.block_count - skip - self.regime, _RING - skip)), skip)

    def _tail(self, count: int, skip: int = 0) -> NDArray[np.float64]:
        """Last blocks as one slice: the ring is written twice, so that any stretch of it is contiguous."""
        end = (self.block_count - skip - 1) % _RING + 1 + _RING
        return self._ring[end - count : end]

    def begin_regime(self, windows_ago: int) -> None:
        """Begin a regime `windows_ago`: exclude the blocks before it from the recent level."""
        self.regime = max(0, self.block_count - windows_ago // BLOCK)

    def take_out(self, windows: int) -> int:
        """Replace the blocks of the last `windows`, an excursion, with those before; returns how many were replaced."""
        count = min(-(-windows // BLOCK) + 1, self.block_count // 2, _RING // 2)
        if count > 0:
            before = self._tail(count, count).copy()
            for index, value in enumerate(before.tolist()):
                slot = (self.block_count - count + index) % _RING
                self._ring[slot] = self._ring[slot + _RING] = value
        if self._block and self.recent_level is not None:
            present = middle(before) if count > 0 else self.recent_level
            self._block = [present] * len(self._block)
        return max(0, count)

    def save_spreads(self) -> None:
        """Set the learned spreads of the series' noise aside, and learn new ones; call this after a change of level."""
        self._aside = (self.fast_spread, self._window_spread)
        self.fast_spread, self._window_spread = Spread(), Spread(_WINDOWS_KEPT)

    def restore_spreads(self) -> None:
        """Undo `save_spreads`, if it was called."""
        if self._aside is not None:
            self.fast_spread, self._window_spread = self._aside
            self._aside = None

    def fast_sigma(self) -> float:
        """Standard deviation of a median of `FAST` windows while the run was healthy."""
        measured = self.fast_spread.sigma()
        if measured is not None:
            return measured
        single = self._window_spread.sigma()
        return _SIGMA_UNKNOWN if single is None else single * FAST**-NOISE_FADES

    def window_sigma(self) -> float:
        """Standard deviation of single windows around the recent level."""
        return self._window_spread.sigma() or _SIGMA_UNKNOWN

    def resolution(self) -> float:
        """Width of one clock tick at the present level (a logarithm); 0 where the clock is fine or noise dithers it."""
        if not self._clock.tick or self.recent_level is None:
            return 0.0
        part = self._clock.tick / math.exp(self.recent_level)
        return 0.0 if self.window_sigma() > DITHERED * part else math.log1p(part)

    def level(self, windows: int) -> float | None:
        """Level: the median of about the last `windows`, as a logarithm; None before any."""
        if windows <= len(self.recent):
            recent = list(self.recent)[-windows:]
            return sorted(recent)[len(recent) // 2] if recent else None
        count = min(windows // BLOCK, self.block_count, _RING)
        return middle(self._tail(count)) if count else None

    def _end_block(self, end: float) -> None:
        recent, height = self.recent_level, self.spike_height
        if recent is not None and height < math.inf:
            self._block = [recent if level - recent >= height else level for level in self._block]
        value = block_level(self._block)
        self._block.clear()
        slot = self.block_count % _RING
        self._ring[slot] = self._ring[slot + _RING] = value
        self.block_count += 1
        reference = self.last_blocks(REFERENCE_BLOCKS)
        if len(reference) >= _REFERENCE_LEAST and not self.is_held:
            self.recent_level = middle(reference)
            below = self.recent_level - middle(reference[-_LOCAL_BLOCKS:])
            self.below = below if below > BELOW_LEAST else 0.0
        if self.block_count % HALF_BLOCKS == 0:
            self.halves.append((self.block_count, end, middle(self._tail(HALF_BLOCKS))))
        if self.block_count % HOUR_BLOCKS == 0:
            self._end_hour(end)

    def _end_hour(self, end: float) -> None:
        """Update the baseline at an hour's end: the mean of the three lowest hours after the first (warm-up)."""
        start, self._hour_start = self._hour_start or end, end
        values, self._hour_values = self._hour_values, []
        self._hours_seen += 1
        if self._hours_seen == 1 or self.declared or not values:
            return
        hour = _Hour(middle(np.array(values)), start, end, *band(values))
        self._hours = sorted([*self._hours, hour])[:_LOWEST_HOURS]
        if len(self._hours) < _LOWEST_HOURS:
            return
        level = sum(each.level for each in self._hours) / _LOWEST_HOURS
        if self.baseline is None or level < math.log(self.baseline.level) - IMPROVEMENT:
            self.baseline = Baseline(
                self.series.name,
                math.exp(level),
                min(each.start for each in self._hours),
                max(each.end for each in self._hours),
                min(each.low for each in self._hours),
                max(each.high for each in self._hours),
            )

    def baseline_before(self, onset: float) -> Baseline | None:
        """Baseline; while the run has none, one from the recent windows before an onset, None without such windows."""
        if self.baseline is not None:
            return self.baseline
        before = [
            each for each in zip(self._starts, self._levels, strict=True) if each[0] < onset - SAME_MOMENT_SECONDS
        ]
        return recent_baseline(self.series.name, before)

    def levels_since(self, onset: float) -> list[float]:
        """Levels of the windows from an onset on, as far back as they are stored."""
        levels = zip(self._starts, self._levels, strict=True)
        return [level for start, level in levels if start >= onset - SAME_MOMENT_SECONDS]

    def levels_before(self, onset: float) -> list[float]:
        """Levels of the windows up to an onset, as far back as they are stored."""
        levels = zip(self._starts, self._levels, strict=True)
        return [level for start, level in levels if start < onset - SAME_MOMENT_SECONDS]

    def stored_levels(self) -> NDArray[np.float64]:
        """Levels of all windows that are stored, oldest first."""
        return np.fromiter(self._levels, np.float64, len(self._levels))

    def _follow_phase(self, level: float, start: float, phase: str | None) -> None:
        """Set the baseline from the phase `baseline`, where the workload declares one."""
        if phase == _BASELINE:
            if not self._phase_values:
                self._phase_start = start
            if len(self._phase_values) < _PHASE_WINDOWS:
                self._phase_values.append(level)
        elif self._phase_values and not self.declared and len(self._phase_values) >= FAST:
            values = np.array(self._phase_values)
            values = values[: before_rise(values)]
            end = self._phase_start + (start - self._phase_start) * len(values) / len(self._phase_values)
            hour = HOUR_BLOCKS * BLOCK
            pieces = [values[at : at + hour] for at in range(0, max(1, len(values) - hour + 1), hour)]
            self.declared = True
            level = min(middle(piece) for piece in pieces)
            self.baseline = baseline_of(self.series.name, level, values, self._phase_start, end)
            self._phase_values, self._hour_values = [], []

    def _logarithm(self, value: float) -> float | None:
        """Logarithm of a value; None for an impossible one. A coarse clock's value is spread over its tick first, so
        that medians move within a tick."""
        value = self._clock.spread(value, self.windows)
        if not (0 < value < math.inf):
            return None
        return math.log(value)
