"""Merge recurring excursions into the findings of a run, except those that another finding states already."""

from collections.abc import Sequence

from cliffwatch.analysis.finding import Finding, FindingKind
from cliffwatch.analysis.thresholds import ABOVE_STATED

#: Kinds of latency findings that state a rise which excursions are part of.
_STATED_BY = frozenset({FindingKind.CLIFF, FindingKind.STEP, FindingKind.DRIFT, FindingKind.SPIKES})


def with_returning(findings: Sequence[Finding], recurring: Sequence[Finding]) -> list[Finding]:
    """Findings with recurring excursions merged in, in order of onset."""
    apart = [one for one in recurring if not any(is_one_change(each, one) for each in findings)]
    return sorted([*findings, *apart], key=lambda finding: finding.onset)


def is_one_change(other: Finding, recurring: Finding) -> bool:
    """Whether excursions that recur are part of another change: it lasted when they were raised, and had begun when
    most of them came."""
    assert recurring.detected is not None, "it is raised window by window, and so has a moment"
    latest = recurring.onset + ABOVE_STATED * (recurring.detected - recurring.onset)
    lasted = other.until is None or other.until >= recurring.detected
    return other.kind in _STATED_BY and other.onset <= latest and lasted
