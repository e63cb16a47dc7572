"""Whether events recur or come by chance: their spacing, and their number, against a Poisson process.

Single slow windows at random distances happen on every shared machine. So spikes are a finding only if their distances
are more even than those of independent events, or if there are more of them than such a machine has.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

from cliffwatch.analysis.thresholds import (
    CHANCE_NUMBER,
    CHANCE_SPACING,
    ISOLATED_PER_DAY,
    ONE_EVENT_WINDOWS,
    RECURRENCES_LEAST,
)

_DAY_SECONDS = 86_400.0
#: Last events of which the spacing and the number are judged: all together, and a shorter series that began later.
_LAST = (24, 8)


def is_recurrent(starts: Sequence[float], window_seconds: float) -> bool:
    """Whether events recur, by their starts in order (seconds). Starts within a few windows are one event."""
    events: list[float] = []
    for start in starts:
        if not events or start - events[-1] > ONE_EVENT_WINDOWS * window_seconds:
            events.append(start)
    series = {tuple(events[-count:]) for count in _LAST}
    return any(
        len(each) >= RECURRENCES_LEAST
        and (
            chance_of_spacing(each, window_seconds) < CHANCE_SPACING
            or chance_of_number(each, window_seconds) < CHANCE_NUMBER
        )
        for each in series
    )


def chance_of_spacing(starts: Sequence[float], window_seconds: float) -> float:
    """Probability that all distances of independent events between the first and the last of `starts` lie between the
    shortest and the longest distance here, to the precision of a window.

    Independent events divide their time uniformly (Dirichlet distribution); the probability follows from the volume of
    a simplex whose edges are at least the shortest and at most the longest distance (de Finetti; Holst 1980, "On the
    lengths of the pieces of a stick broken at random").
    """
    distances = [later - earlier for earlier, later in pairwise(starts)]
    count, total = len(distances), starts[-1] - starts[0]
    shortest = max(0.0, min(distances) - window_seconds) / total
    longest = (max(distances) + window_seconds) / total
    left = 1 - count * shortest
    if left <= 0:
        return 0.0
    most = (longest - shortest) / left
    terms = ((-1) ** n * math.comb(count, n) * max(0.0, 1 - n * most) ** (count - 1) for n in range(count + 1))
    return left ** (count - 1) * min(1.0, max(0.0, math.fsum(terms)))


def chance_of_number(starts: Sequence[float], window_seconds: float) -> float:
    """Probability of as many events as `starts` after the first of them, until the last one, on a machine that has
    `ISOLATED_PER_DAY` (upper tail of the Poisson distribution)."""
    mean = ISOLATED_PER_DAY / _DAY_SECONDS * (starts[-1] - starts[0] + window_seconds)
    fewer = math.fsum(math.exp(-mean + n * math.log(mean) - math.lgamma(n + 1)) for n in range(len(starts) - 1))
    return max(0.0, 1 - fewer)
