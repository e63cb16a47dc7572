"""Span lengths: how many windows each detector looks at.

Spans count windows, so that a drill of 1 s windows and a soak of 10 s windows are judged alike; the times in brackets
are those of a soak of 10 s windows.
"""

import math

#: Windows in a block, the unit of the slow detectors (1 min).
BLOCK = 6
#: Blocks in an hour's worth: what a baseline is the median of (1 h).
HOUR_BLOCKS = 60
HALF_BLOCKS = HOUR_BLOCKS // 2
HOUR = HOUR_BLOCKS * BLOCK
#: Blocks before a span that it is compared with (3 h), and the fewest that make a comparison.
REFERENCE_BLOCKS = 180
REFERENCE_MINIMUM = 30
#: Spans of the step detector, in blocks (8 min … 1 h).
STEP_SPANS = (8, 12, 20, 30, 60)
#: Windows whose median is a level for the fast detector.
FAST = 11
#: The power by which the spread of medians of a span falls with its length: less than 1 / 2, since windows are alike.
NOISE_FADES = 0.3
#: Moments that are no further apart than this are the same: they are sums of window lengths.
SAME_MOMENT_SECONDS = 1e-6


def log_ratio(ratio: float) -> float:
    """A factor on the scale of the detectors, which work on natural logarithms."""
    return math.log(ratio)
