"""Compare a figure of one run with the same figure of earlier runs: by how much it differs, and whether it is worse.

Runs differ by factors, so figures are compared as logarithms. With n earlier runs of mean m and standard deviation s,
the logarithm of the ratio is x - m, and its 95 % interval x - m ± t·s·sqrt(1 + 1/n), with Student's t of n - 1 degrees
of freedom: the run and the mean of the earlier ones both vary (Hahn and Meeker, Statistical Intervals, 1991, 4.7).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, stdev

from cliffwatch.analysis.student import student_quantile

#: A figure is worse from this ratio on; one that is proven to be below it is not worse.
WORSE_FROM = 1.2
#: Earlier runs that are needed: one alone does not show how much runs differ.
RUNS_LEAST = 2
#: More runs than this are not asked for.
_RUNS_MOST = 30
_PROBABILITY = 0.95


class Outcome(StrEnum):
    """Whether a run is worse than earlier ones, or too few of them were made to say so."""

    NOT_WORSE = "not_worse"
    WORSE = "worse"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Ratio:
    """A figure by the geometric mean of the same figure of earlier runs, with its 95 % interval.

    `runs_needed`: how many earlier runs would be conclusive, if they differed as these do; None where these are, or
    where more than 30 would not be.
    """

    ratio: float
    low: float
    high: float
    outcome: Outcome
    runs_needed: int | None = None


def ratio_to_earlier(value: float, earlier: Sequence[float], *, is_worse_above: bool) -> Ratio:
    """Compare a figure with that of two or more earlier runs; all are above zero. `is_worse_above`: as a latency is,
    which is worse when it is higher; a rate is worse when it is lower."""
    logarithms = list(map(math.log, earlier))
    center, deviation = math.log(value) - fmean(logarithms), stdev(logarithms)
    half = _half_width(deviation, len(earlier))
    # From here on, worse is higher.
    worse_by = center if is_worse_above else -center
    outcome = _outcome(worse_by, half)
    needed = None
    if outcome is Outcome.INCONCLUSIVE:
        needed = _conclusive_from(len(earlier) + 1, worse_by, deviation)
    return Ratio(math.exp(center), math.exp(center - half), math.exp(center + half), outcome, needed)


def runs_needed(earlier: Sequence[float]) -> int | None:
    """How many earlier runs, two or more of which differ like these, show that an equal run is not worse; None where
    more than 30 would not."""
    return _conclusive_from(RUNS_LEAST, 0.0, stdev(map(math.log, earlier)))


def _conclusive_from(least: int, worse_by: float, deviation: float) -> int | None:
    """The fewest earlier runs, from `least` on, with which a run that is worse by so much is not inconclusive."""
    counts = range(least, _RUNS_MOST + 1)
    enough = (runs for runs in counts if _outcome(worse_by, _half_width(deviation, runs)) is not Outcome.INCONCLUSIVE)
    return next(enough, None)


def together(outcomes: Iterable[Outcome]) -> Outcome:
    """Outcome of a run from those of its figures: one that is worse decides, then one that is inconclusive."""
    found = set(outcomes)
    decisive = (outcome for outcome in (Outcome.WORSE, Outcome.INCONCLUSIVE) if outcome in found)
    return next(decisive, Outcome.NOT_WORSE if found else Outcome.INCONCLUSIVE)


def _outcome(worse_by: float, half: float) -> Outcome:
    limit = math.log(WORSE_FROM)
    if worse_by + half < limit:
        return Outcome.NOT_WORSE
    return Outcome.WORSE if worse_by >= limit and worse_by - half > 0 else Outcome.INCONCLUSIVE


def _half_width(deviation: float, runs: int) -> float:
    return student_quantile(_PROBABILITY, runs - 1) * deviation * math.sqrt(1 + 1 / runs)
