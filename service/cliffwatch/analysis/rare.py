"""Merge rare spikes into the findings of a whole run, so that each series of spikes is one finding."""

from collections.abc import Sequence
from dataclasses import replace

from cliffwatch.analysis.finding import SUDDEN, Finding, FindingKind, Series
from cliffwatch.analysis.thresholds import EASED_WINDOWS, RARE_APART


def with_rare(
    findings: Sequence[Finding], rare: Sequence[Finding], series: Sequence[Series], window_seconds: float
) -> list[Finding]:
    """Findings with rare spikes merged in: those found already as spikes only add a `recurrence`.

    Rare spikes during a cliff or a step are part of it. Of two series of spikes of one operation, the earlier is kept.
    """
    operations = {one.name: one.operation for one in series}
    kept = list(findings)
    for one in rare:
        same = [
            each
            for each in kept
            if each.kind is FindingKind.SPIKES and operations[each.series] == operations[one.series]
        ]
        near = [
            each
            for each in same
            if abs(each.onset - one.onset) <= EASED_WINDOWS * window_seconds or _began_later(each, one)
        ]
        if near:
            kept[kept.index(near[0])] = replace(near[0], recurrence=one.recurrence)
        elif not any(_covers(each, one) for each in findings) and not any(each.onset < one.onset for each in same):
            kept = [each for each in kept if each not in same] + [one]
    return sorted(kept, key=lambda finding: finding.onset)


def _began_later(spikes: Finding, rare: Finding) -> bool:
    """Whether a series of spikes is the one that rare spikes found too, of which few came before its onset."""
    recurrence, earlier = rare.recurrence, spikes.onset - rare.onset
    if recurrence is None or earlier <= 0:
        return False
    return recurrence.most_seconds >= max(RARE_APART * recurrence.spacing_seconds, earlier / 2)


def _covers(change: Finding, rare: Finding) -> bool:
    """Whether rare spikes began, or were only seen to be several, during a sudden change."""
    moments = (rare.onset, rare.onset if rare.detected is None else rare.detected)
    is_during = any(change.onset <= moment and (change.until is None or change.until > moment) for moment in moments)
    return change.kind in SUDDEN and is_during
