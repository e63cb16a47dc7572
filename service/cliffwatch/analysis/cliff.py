"""What a cliff is, once a detector has established that a level rose: decided here, and nowhere else.

Changes are found by `online` while a run goes on and by `offline` over the whole of it; both ask here what they are.
"""

from cliffwatch.analysis.finding import FindingKind
from cliffwatch.analysis.span_lengths import log_ratio
from cliffwatch.analysis.thresholds import CLIFF_RATIO


def is_cliff(height: float) -> bool:
    """Whether a sudden change is a cliff. `height`: by how much the level rose (a logarithm)."""
    return height >= log_ratio(CLIFF_RATIO)


def sudden_kind(height: float) -> FindingKind:
    """Whether a sudden change is a cliff or a step."""
    return FindingKind.CLIFF if is_cliff(height) else FindingKind.STEP
