"""Definition of a cliff: classify a rise of latency that a detector has established as a cliff or a step.

Changes are found by `online` while a run goes on and by `offline` over the whole of it; both ask here what they are,
and the analysis of a whole run asks here which of the cliffs that either of them found is one.
"""

from cliffwatch.analysis.finding import Baseline, Finding, FindingKind
from cliffwatch.analysis.span_lengths import log_ratio
from cliffwatch.analysis.thresholds import (
    AFFECTED_FROM,
    ALONE_CONFIDENCE,
    CLIFF_RATIO,
    CORROBORATED_CONFIDENCE,
    CORROBORATED_RATIO,
    LASTED_CONFIDENCE,
    LASTED_RATIO,
    LASTED_WINDOWS,
    UNMEASURED_CONFIDENCE,
    WITHIN_BAND_RATIO,
)

#: By how much a level rises at least to be a cliff (a logarithm).
_LEAST_HEIGHT = log_ratio(CLIFF_RATIO)


def is_cliff(height: float) -> bool:
    """Whether a sudden change is a cliff. `height`: by how much the level rose (a logarithm)."""
    return height >= _LEAST_HEIGHT


def sudden_kind(height: float) -> FindingKind:
    """Whether a sudden change is a cliff or a step."""
    return FindingKind.CLIFF if is_cliff(height) else FindingKind.STEP


def cliff_height(height: float) -> float:
    """The height of a rise that is a cliff whatever its noise: by the recent level, which may have risen with it, it
    may look smaller."""
    return max(height, _LEAST_HEIGHT)


def height_to_join(height: float) -> float:
    """By how much another operation rises at least to be part of a change of this height: half of it, and no more than
    what makes a cliff by itself."""
    return min(height / 2, _LEAST_HEIGHT)


def confidence_of(is_corroborated: bool, is_device_measured: bool) -> float:
    """How sure a change is: a device shows it too, no device was measured, or one was and does not show it."""
    if is_corroborated:
        return CORROBORATED_CONFIDENCE
    return ALONE_CONFIDENCE if is_device_measured else UNMEASURED_CONFIDENCE


def is_cliff_by_itself(raised: Finding, window_seconds: float) -> bool:
    """Whether what was raised while the run went on is a cliff although the whole run shows no such change: it is large
    and sure, and lasted or has not ended."""
    lasted = raised.until is None or raised.until - raised.onset >= LASTED_WINDOWS * window_seconds
    is_sure = raised.confidence >= LASTED_CONFIDENCE or raised.ratio >= CORROBORATED_RATIO
    return raised.kind is FindingKind.CLIFF and lasted and raised.ratio >= LASTED_RATIO and is_sure


def is_cliff_by_size(cliff: Finding, windows: float) -> bool:
    """Whether a cliff of the whole run fell to a level, of one that has lasted for so many windows.

    What ends within a few windows, as a stall at the end of the load does, has none.
    """
    if cliff.size is None:
        return True
    size = cliff.size
    return size.ratio >= AFFECTED_FROM and not is_within_baseline(size.worst, size.ratio, size.baseline, windows)


def is_within_baseline(worst: float, ratio: float, baseline: Baseline, windows: float) -> bool:
    """Whether a rise is no more than what the baseline itself did: small, never beyond its band, and not for long."""
    return ratio < WITHIN_BAND_RATIO and worst <= baseline.high and windows < LASTED_WINDOWS
