"""Span lengths of the detectors, in windows and in blocks of windows.

Spans count windows, so that a drill of 1 s windows and a soak of 10 s windows are judged alike; the times in brackets
are those of a soak of 10 s windows.
"""

import math
from functools import cache

#: Windows in a block, the unit of the slow detectors (1 min).
BLOCK = 6
#: Blocks in an hour, whose median is one candidate for a baseline (1 h).
HOUR_BLOCKS = 60
HALF_BLOCKS = HOUR_BLOCKS // 2
HOUR = HOUR_BLOCKS * BLOCK
#: Blocks before a span with which it is compared (3 h), and the fewest for a comparison.
REFERENCE_BLOCKS = 180
REFERENCE_MINIMUM = 30
#: Spans of the step detector, in blocks (8 min … 1 h).
STEP_SPANS = (8, 12, 20, 30, 60)
#: Windows whose median is a level for the fast detector.
FAST = 11
#: Exponent by which the spread of a span's median falls with the span's length: less than 1 / 2, since neighbouring
#: windows are correlated.
NOISE_FADES = 0.3
#: A day, the period of a load that follows people's hours.
DAY_SECONDS = 86_400.0
#: Times no further apart than this count as equal: they are sums of window lengths.
SAME_MOMENT_SECONDS = 1e-6


@cache
def log_ratio(ratio: float) -> float:
    """Natural logarithm of a ratio: the scale on which the detectors work."""
    return math.log(ratio)
