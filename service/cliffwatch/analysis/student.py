"""Quantiles of Student's t distribution, for confidence intervals of few runs."""

import math


def student_quantile(within: float, freedom: int) -> float:
    """The t that holds the share `within` of the distribution between -t and t, with `freedom` degrees of freedom."""
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _share_within(middle, freedom) < within else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _share_within(angle: float, freedom: int) -> float:
    """Share of the distribution between -t and t, for t = sqrt(freedom) tan(angle): Abramowitz and Stegun, Handbook of
    Mathematical Functions, 26.7.3 for odd and 26.7.4 for even degrees of freedom."""
    is_odd = freedom % 2
    cosine = math.cos(angle)
    term = cosine if is_odd else 1.0
    total = term if freedom > 1 else 0.0
    for power in range(2 + is_odd, freedom - 1, 2):
        term *= cosine**2 * (power - 1) / power
        total += term
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if is_odd else total
