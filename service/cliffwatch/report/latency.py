"""Exact latencies of a run: histograms merged by phase and hour, and a heat map over time."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np
from numpy.typing import NDArray

from cliffwatch.base.histogram import Histogram
from cliffwatch.journal import JournalFault, JournalReader, JournalWindow, files
from cliffwatch.model.operation import primary_latency
from cliffwatch.report.charts.heat import COLUMN_LIMIT, HeatMap, shares_of

HOUR_SECONDS = 3600.0
#: Rows of the heat map: powers of two of a second, from about 1 µs to more than an hour, the end of a histogram.
BOUNDS_SECONDS = [2.0**power for power in range(-20, 13)]


@dataclass(frozen=True, slots=True)
class LatencyGroup:
    """Merged histograms, by latency name, of the windows that share a phase and an hour (from 0) of elapsed time."""

    phase: str
    hour: int
    histograms: dict[str, Histogram]


@dataclass(slots=True)
class _Spread:
    """Builder of one latency's heat map: counts by time span of the load (columns) and by upper bound (rows)."""

    name: str | None
    zero: float
    seconds: float
    columns: int
    counts: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.zeros((len(BOUNDS_SECONDS), self.columns), dtype=np.int64)

    def add(self, window: JournalWindow, name: str, histogram: Histogram) -> None:
        column = int(((window.start + window.end) / 2 - self.zero) / self.seconds * self.columns)
        if name == self.name and 0 <= column < self.columns:
            self.counts[:, column] += np.diff(histogram.cumulative_counts(BOUNDS_SECONDS), prepend=0)

    def heat(self) -> HeatMap | None:
        return shares_of(np.linspace(0.0, self.seconds, self.columns + 1), BOUNDS_SECONDS, self.counts.astype(float))


def read_latency(
    reader: JournalReader, windows: Sequence[JournalWindow], zero: float, seconds: float
) -> tuple[list[LatencyGroup], HeatMap | None]:
    """Read latency.hlog once, for a load of `seconds` that began at `zero`. Returns histograms by phase and hour, from
    which longer spans are merged, and the heat map of the primary latency, None where nothing was counted."""
    recording = [window for window in windows if window.latency]
    name = primary_latency(sorted({name for window in recording for name in window.latency}))
    spread = _Spread(name, zero, seconds, _columns(recording, seconds)) if seconds > 0 and recording else None
    groups = []
    merged = reader.merged(
        recording, lambda window: f"{_hour(window, zero)}/{window.phase}", spread.add if spread is not None else None
    )
    for key, histograms in merged.items():
        hour, _, phase = key.partition("/")
        groups.append(LatencyGroup(phase, int(hour), histograms))
    recorded, read = latency_counts(windows, groups)
    if read < recorded and not any(fault.file == files.LATENCY for fault in reader.faults):
        message = f"missing or cut short: {recorded - read} of {recorded} latencies are not there"
        reader.faults.append(JournalFault(files.LATENCY, 0, message))
    return groups, spread.heat() if spread is not None else None


def _columns(windows: Sequence[JournalWindow], seconds: float) -> int:
    """Number of heat map columns: about one for each window of the load, at most COLUMN_LIMIT."""
    return max(1, min(COLUMN_LIMIT, round(seconds / median(window.end - window.start for window in windows))))


def _hour(window: JournalWindow, zero: float) -> int:
    return max(0, int((window.start - zero + 1e-6) // HOUR_SECONDS))


def latency_counts(windows: Sequence[JournalWindow], latency: Sequence[LatencyGroup]) -> tuple[int, int]:
    """Number of latencies that the windows counted, and how many of them latency.hlog still holds."""
    recorded = sum(int(summary.get("count") or 0) for window in windows for summary in window.latency.values())
    read = sum(histogram.count for group in latency for histogram in group.histograms.values())
    return recorded, min(read, recorded)
