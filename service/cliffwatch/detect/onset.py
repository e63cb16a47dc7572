"""When exactly a change began: the window that best splits all channels at once."""

import numpy as np

from cliffwatch.detect.whole import Array

#: Windows searched on each side of where the segmentation saw the change (20 min).
REACH = 120
#: What a single window may weigh, in nats: an outlier is one window, not a change.
_CLIENT_WEIGHT, _DEVICE_WEIGHT = 4.0, 2.0


def evidence_of_change(column: Array, before: float, after: float, sigma: float, weight: float) -> Array:
    """For each window how much more it looks like `after` than like `before`, in nats; 0 where nothing was measured."""
    nats = ((column - before) ** 2 - (column - after) ** 2) / (2 * sigma**2)
    return np.asarray(np.clip(np.nan_to_num(nats), -weight, weight))


def split(evidence: Array) -> int:
    """The first window of what looks like after the change."""
    # Before the split everything should look like before: the least that was gathered up to it.
    gathered = np.concatenate(([0.0], np.cumsum(evidence)))
    return int(np.argmin(gathered))


def place(client: Array, others: list[tuple[Array, bool]], near: int, reach: int, sides: int) -> int:
    """The window of the change near window `near`.

    `others` are further channels, each with whether it is a device's. Levels are taken from `sides` windows on each
    side of what is searched, so that the change itself is in neither.
    """
    first, last = max(0, near - reach), min(len(client), near + reach)
    total = np.zeros(last - first)
    for column, is_device in [(client, False), *others]:
        levels = _levels(column, first, last, near, sides)
        if levels is None:
            continue
        before, after, sigma = levels
        if after <= before or (column is not client and after - before < 1.5 * sigma / sides**0.5 + 0.03):
            continue
        weight = _DEVICE_WEIGHT if is_device else _CLIENT_WEIGHT
        total += evidence_of_change(column[first:last], before, after, sigma, weight)
    return first + split(total)


def _levels(column: Array, first: int, last: int, near: int, sides: int) -> tuple[float, float, float] | None:
    before = column[max(0, first - sides) : max(first, near - 12)]
    after = column[min(last, near + 12) : last + sides]
    before, after = before[np.isfinite(before)], after[np.isfinite(after)]
    if len(before) < 6 or len(after) < 4:
        return None
    low, high = float(np.median(before)), float(np.median(after))
    spread = 1.4826 * float(np.median(np.abs(before - low)))
    spread_after = 1.4826 * float(np.median(np.abs(after - high)))
    return low, high, max(spread, min(spread_after, 2 * spread), 0.01)
