"""Coverage: the measured part of a run's requested time, and the gaps.

Gaps are found from the windows themselves: time between two committed windows was not measured, whether or not an event
records why.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: A hole shorter than this part of a window is rounding of its bounds, not a gap.
GAP_TOLERANCE = 0.01
#: The reason of a gap that no event of the run accounts for.
UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class MeasuredInterval:
    """Window as coverage counts it: `start` and `end` in seconds since the epoch; `seconds` of it were measured."""

    start: float
    end: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Gap:
    """An interval in which nothing was measured, in seconds since the epoch, and why."""

    start: float
    end: float
    reason: str

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Coverage:
    """Requested and measured seconds, and the gaps. `partial_windows` were measured for less than their length, and
    lack `partial_seconds` in total."""

    asked_seconds: float
    measured_seconds: float
    gaps: tuple[Gap, ...] = ()
    partial_windows: int = 0
    partial_seconds: float = 0.0

    @property
    def ratio(self) -> float:
        """Measured / requested seconds, 0…1; 0 when no time was requested, since nothing was shown."""
        return self.measured_seconds / self.asked_seconds if self.asked_seconds > 0 else 0.0


def measure_coverage(
    windows: Iterable[MeasuredInterval],
    asked_start: float,
    asked_end: float,
    window_seconds: float,
    explanations: Sequence[Gap] = (),
) -> Coverage:
    """Coverage of [`asked_start`, `asked_end`), both seconds since the epoch, by windows in order of their start.

    Windows are clipped to the interval, and time that is in two windows counts once. `explanations` are the gaps that
    the run's events record; a gap gets the reasons of all of them that overlap it.
    """
    tolerance = window_seconds * GAP_TOLERANCE
    cursor, measured, partial_windows, partial_seconds = asked_start, 0.0, 0, 0.0
    gaps: list[Gap] = []
    for window in windows:
        start, end = max(window.start, cursor), min(window.end, asked_end)
        if end <= start:
            continue
        if start - cursor > tolerance:
            gaps.append(Gap(cursor, start, _reason(cursor, start, explanations)))
        share = (end - start) / (window.end - window.start)
        seconds = min(window.seconds * share, end - start)
        measured += seconds
        if end - start - seconds > tolerance:
            partial_windows += 1
            partial_seconds += end - start - seconds
        cursor = end
    if asked_end - cursor > tolerance:
        gaps.append(Gap(cursor, asked_end, _reason(cursor, asked_end, explanations)))
    return Coverage(max(0.0, asked_end - asked_start), measured, tuple(gaps), partial_windows, partial_seconds)


def _reason(start: float, end: float, explanations: Sequence[Gap]) -> str:
    reasons = {gap.reason: None for gap in explanations if gap.start < end and gap.end > start}
    return ", ".join(reasons) or UNEXPLAINED
