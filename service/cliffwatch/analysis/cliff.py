"""Definition of a cliff: classify a rise of latency, found by a detector, as a cliff or a step.

`online` finds changes during a run and `offline` finds them in the whole run; both classify them here. Which of these
cliffs the analysis of a whole run reports is also decided here.
"""

from cliffwatch.analysis.finding import SUDDEN, Baseline, Finding, FindingKind
from cliffwatch.analysis.span_lengths import HOUR, log_ratio
from cliffwatch.analysis.thresholds import (
    AFFECTED_FROM,
    ALONE_CONFIDENCE,
    CLIFF_RATIO,
    CORROBORATED_CONFIDENCE,
    CORROBORATED_RATIO,
    HOUR_RATIO,
    LASTED_CONFIDENCE,
    LASTED_RATIO,
    LASTED_WINDOWS,
    LASTED_WORST_RATIO,
    SEGMENT_RATIO,
    UNENDED_WINDOWS,
    UNMEASURED_CONFIDENCE,
    WITHIN_BAND_RATIO,
)

#: Least rise of a level that is a cliff (a logarithm).
_LEAST_HEIGHT = log_ratio(CLIFF_RATIO)


def is_cliff(height: float, noise: float = 0.0) -> bool:
    """Whether a sudden change is a cliff. `height`: the rise of the level (a logarithm), of which a few windows know no
    more than that it is within `noise`, one standard deviation."""
    return height >= _LEAST_HEIGHT + noise


def sudden_kind(height: float, noise: float = 0.0) -> FindingKind:
    """Kind of a sudden change, cliff or step; `height` and `noise` as for `is_cliff`."""
    return FindingKind.CLIFF if is_cliff(height, noise) else FindingKind.STEP


def cliff_height(height: float, noise: float) -> float:
    """Height (a logarithm) of a rise that is known to be a cliff, raised to the least height of a cliff if it is below:
    the rise may look too small from the recent level, if that rose too."""
    return max(height, _LEAST_HEIGHT + noise)


def height_to_join(height: float) -> float:
    """Least rise with which another operation joins a change of this `height`: half the height, but no more than the
    least height of a cliff (logarithms)."""
    return min(height / 2, _LEAST_HEIGHT)


def confidence_of(is_corroborated: bool, is_device_measured: bool) -> float:
    """Confidence of a change: highest if a device shows the change too, lower if no device was measured, lowest if one
    was measured and does not show it."""
    if is_corroborated:
        return CORROBORATED_CONFIDENCE
    return ALONE_CONFIDENCE if is_device_measured else UNMEASURED_CONFIDENCE


def counts_by_itself(raised: Finding, end: float, window_seconds: float) -> bool:
    """Whether a change raised during the run counts even if the whole run shows no such change: a large cliff, with a
    high confidence or a very high ratio, that lasted long or has not ended; or any change to nearly twice the level for
    an hour. `end`: of the load."""
    if raised.kind not in (*SUDDEN, FindingKind.DRIFT):
        return False
    lasted = ((end if raised.until is None else raised.until) - raised.onset) / window_seconds
    is_sure = raised.confidence >= LASTED_CONFIDENCE or raised.ratio >= CORROBORATED_RATIO
    is_long = raised.until is None or lasted >= LASTED_WINDOWS
    # A rise may begin with a lower one, which alone is in its ratio.
    worst_ratio = 0.0 if raised.size is None else raised.size.worst_ratio
    is_high = raised.ratio >= LASTED_RATIO or worst_ratio >= LASTED_WORST_RATIO
    is_large = raised.kind is FindingKind.CLIFF and is_long and is_high and is_sure
    return is_large or (lasted >= HOUR and raised.ratio >= HOUR_RATIO)


def is_unended(raised: Finding, end: float, window_seconds: float) -> bool:
    """Whether a sudden change that was raised, and that a device shows, lasted to the end of the load, at `end`."""
    lasts = raised.until is None and end - raised.onset >= UNENDED_WINDOWS * window_seconds
    return raised.kind in SUDDEN and lasts and raised.confidence >= LASTED_CONFIDENCE


def is_by_size(finding: Finding, windows: float) -> bool:
    """Whether a cliff of the whole run, or a step in it that was not raised, is large enough to be reported, by its
    size and its length in `windows`. Other findings are.

    True for a change without a size: one that ends within a few windows, such as a stall at the end of the load.
    """
    size = finding.size
    if size is None:
        return True
    if finding.kind is FindingKind.CLIFF:
        return size.ratio >= AFFECTED_FROM and not is_within_baseline(size.worst, size.ratio, size.baseline, windows)
    return finding.kind is not FindingKind.STEP or finding.detected is not None or size.ratio >= SEGMENT_RATIO


def is_within_baseline(worst: float, ratio: float, baseline: Baseline, windows: float) -> bool:
    """Whether a rise is within the baseline's own variation: short, small, and at worst within the baseline's band."""
    return ratio < WITHIN_BAND_RATIO and worst <= baseline.high and windows < LASTED_WINDOWS
