"""Axis ticks of the picture: few, and at round numbers."""

import numpy as np
from matplotlib.ticker import FixedLocator

#: Least ratio of highest to lowest value of a logarithmic axis: wherever it begins, it has two round numbers.
_SPAN_MINIMUM = 3.0
_TICKS_LIMIT = 8


def widened(lowest: float, highest: float) -> tuple[float, float]:
    """Widen the span of a logarithmic axis until it holds two round numbers."""
    missing = _SPAN_MINIMUM / (highest / lowest)
    return (lowest / missing**0.5, highest * missing**0.5) if missing > 1 else (lowest, highest)


def log_ticks(lowest: float, highest: float) -> list[float]:
    """Ticks at three to eight round numbers: powers of ten if these are enough, else 1, 2, 5, else every digit."""
    exponents = range(int(np.floor(np.log10(lowest))), int(np.ceil(np.log10(highest))) + 1)
    ticks: list[float] = []
    for digits in ((1,), (1, 2, 5), range(1, 10)):
        ticks = [digit * 10.0**exponent for exponent in exponents for digit in digits]
        ticks = [tick for tick in ticks if lowest <= tick <= highest]
        if len(ticks) >= 3:
            break
    return ticks[:: -(-len(ticks) // _TICKS_LIMIT)] if ticks else ticks


def even_bytes(highest: float) -> FixedLocator:
    """Ticks of a byte axis: at most four, at powers of two."""
    step = 2.0 ** np.ceil(np.log2(max(1.0, highest) / 3))
    return FixedLocator(list(np.arange(0, highest * 1.15 + step / 2, step)))
