"""Steady state of a drive, by the rule of SNIA's performance test specification.

Five rounds in a row are steady when the largest and the smallest differ by at most 20 % of their mean, and the line
fitted to them rises or falls by at most 10 % of the mean from the first round to the last. Operations per second have
to be steady, and also the mean latency of the drive's writes where it was measured: a load with a fixed rate has steady
operations on any drive.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cliffwatch.base.units import format_share
from cliffwatch.journal.windows import JournalWindow
from cliffwatch.model.steady import ROUNDS

RANGE_MAXIMUM, SLOPE_MAXIMUM = 0.2, 0.1
#: A round of which a smaller part was measured does not count, and five rounds have to follow it.
MEASURED_MINIMUM = 0.9
OPERATIONS, WRITE_LATENCY = "operations_per_second", "device_write_latency_seconds"
_NAMES = {OPERATIONS: "operations per second", WRITE_LATENCY: "the write latency at the block layer"}


@dataclass(frozen=True, slots=True)
class Round:
    """Round of the steady-state rule: `values` by name, empty where too little was measured. Times since the epoch."""

    start: float
    end: float
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Steadiness:
    """Steadiness of a drive. `at` is the end of the first five steady rounds, None while there are none; `why_not` is
    the reason why the last five are not steady."""

    rounds: tuple[Round, ...]
    at: float | None
    why_not: str


@dataclass(slots=True)
class _Sums:
    seconds: float = 0.0
    operations: int = 0
    writes: int = 0
    write_milliseconds: int = 0

    def add(self, window: JournalWindow) -> None:
        self.seconds += window.seconds
        self.operations += window.counters.get("operations", 0)
        self.writes += window.counters.get("device_write_operations", 0)
        self.write_milliseconds += window.counters.get("device_write_milliseconds", 0)

    def values(self, round_seconds: float) -> dict[str, float]:
        if self.seconds < round_seconds * MEASURED_MINIMUM:
            return {}
        values = {OPERATIONS: self.operations / self.seconds}
        if self.writes:
            values[WRITE_LATENCY] = self.write_milliseconds / 1000 / self.writes
        return values


@dataclass(slots=True)
class SteadyWatch:
    """Detect the steady state of a drive from its windows in order, from `start` on. Stores rounds, not windows."""

    start: float
    round_seconds: float
    rounds: list[Round] = field(default_factory=list)
    at: float | None = None
    _sums: _Sums = field(default_factory=_Sums)

    def feed(self, window: JournalWindow) -> float | None:
        """Add a window; returns the end of the first five steady rounds, None while there are none."""
        if self.at is not None or window.start < self.start - 1e-6:
            return self.at
        while window.start >= self._end - 1e-6:
            self._close()
        self._sums.add(window)
        if window.end >= self._end - 1e-6:
            self._close()
        return self.at

    def assessment(self) -> Steadiness:
        """Steadiness so far."""
        return Steadiness(tuple(self.rounds), self.at, "" if self.at is not None else unsteadiness(self.rounds))

    @property
    def _end(self) -> float:
        return self.start + (len(self.rounds) + 1) * self.round_seconds

    def _close(self) -> None:
        end = self._end
        self.rounds.append(Round(end - self.round_seconds, end, self._sums.values(self.round_seconds)))
        self._sums = _Sums()
        if self.at is None and not unsteadiness(self.rounds):
            self.at = end


def assess(windows: Iterable[JournalWindow], start: float, round_seconds: float) -> Steadiness:
    """The steadiness of a run's windows from `start` (seconds since the epoch) on."""
    watch = SteadyWatch(start, round_seconds)
    for window in windows:
        if watch.feed(window) is not None:
            break
    return watch.assessment()


def unsteadiness(rounds: Sequence[Round]) -> str:
    """Reason why the last five rounds are not steady, in words; empty when they are."""
    last = rounds[-ROUNDS:]
    if len(last) < ROUNDS:
        return f"there were {len(rounds)} rounds and the rule needs {ROUNDS}"
    if any(OPERATIONS not in each.values for each in last):
        return f"not all of the last {ROUNDS} rounds were measured"
    for name, words in _NAMES.items():
        values = [each.values[name] for each in last if name in each.values]
        if len(values) < ROUNDS:
            continue
        if fault := _fault(values):
            return f"{words} {fault}"
    return ""


def _share(ratio: float) -> str:
    return format_share(round(ratio, 2))


def _fault(values: Sequence[float]) -> str:
    mean = sum(values) / len(values)
    if mean <= 0:
        return "were zero"
    spread = (max(values) - min(values)) / mean
    if spread > RANGE_MAXIMUM:
        return (
            f"varied by {_share(spread)} of their mean over the last {ROUNDS} rounds, more than {_share(RANGE_MAXIMUM)}"
        )
    slope = float(np.polyfit(np.arange(len(values)), values, 1)[0]) * (len(values) - 1) / mean
    if abs(slope) > SLOPE_MAXIMUM:
        verb = "rose" if slope > 0 else "fell"
        change = f"{verb} by {_share(abs(slope))} of their mean"
        return f"{change} over the last {ROUNDS} rounds, more than {_share(SLOPE_MAXIMUM)}"
    return ""
