"""Period of recurring excursions: when the next one is due, from the starts of the past ones.

Compaction and write-back keep a period. A rise that begins when none is due is not one of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from cliffwatch.analysis.thresholds import (
    INTERVALS_LEAST,
    RECURRENCE_OFF_SCHEDULE,
    RECURRENCE_PART_LEAST,
    RECURRENCE_PART_OF_ONE,
    RECURRENCE_SPREADS,
    RECURRENCE_WINDOWS_LEAST,
    TOLERANCE_MOST,
)

#: Last intervals that count for the period.
_INTERVALS_MOST = 12
#: Most periods over which deviations add up.
_TURNS_MOST = 3


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Schedule of recurring excursions: `period` and `tolerance` in windows, `last` is the window of the last start."""

    last: float
    period: float
    tolerance: float
    is_sure: bool

    def is_due(self, at: float, slack: float = 1.0) -> bool:
        """Whether an excursion may begin at the window `at`, also after one or more due ones that were missed.

        `slack` is a factor on the tolerance.
        """
        since = at - self.last
        turns = max(1, round(since / self.period))
        return abs(since - turns * self.period) <= slack * self.tolerance * math.sqrt(min(turns, _TURNS_MOST))


def schedule_of(starts: Sequence[float]) -> Recurrence | None:
    """Schedule of excursions from their first windows `starts`, in order; None where they show no period.

    A missed excursion makes an interval a multiple of the period, which is no reason to doubt the period.
    """
    intervals = [later - earlier for earlier, later in pairwise(starts)][-_INTERVALS_MOST:]
    if not intervals:
        return None
    period = median(intervals)
    if period <= 0:
        return None
    turns = [max(1, round(interval / period)) for interval in intervals]
    period = sum(intervals) / sum(turns)
    off = sorted(abs(interval - count * period) / count**0.5 for interval, count in zip(intervals, turns, strict=True))
    # A single excursion off schedule does not make the others irregular.
    regular = off[:-1] if off[-1] > RECURRENCE_OFF_SCHEDULE * median(off) else off
    spread = (sum(one * one for one in regular) / len(regular)) ** 0.5 * (1 + 2 / len(off))
    tolerance = max(RECURRENCE_SPREADS * spread, RECURRENCE_WINDOWS_LEAST, RECURRENCE_PART_LEAST * period)
    if len(intervals) == 1:
        tolerance = max(tolerance, RECURRENCE_PART_OF_ONE * period)
    if tolerance > TOLERANCE_MOST * period:
        return None
    return Recurrence(starts[-1], period, tolerance, len(intervals) >= INTERVALS_LEAST)
