"""Merge stalls and shortfalls into a run's findings, except those that a slower latency accounts for."""

from collections.abc import Iterable, Sequence

from cliffwatch.analysis.finding import Finding, FindingKind
from cliffwatch.analysis.thresholds import EASED_WINDOWS, TOGETHER_WINDOWS_OTHERWISE


def with_work(findings: Sequence[Finding], undone: Sequence[Finding], window_seconds: float) -> list[Finding]:
    """Findings of latencies, and the stalls and shortfalls that they do not account for, in order of onset.

    Clients that wait for slower operations complete fewer; a client that waits through a stall has a latency that rose.
    """
    slower = [finding for finding in findings if finding.kind is not FindingKind.RECOVERY]
    apart = [one for one in undone if not any(accounts_for(each, one, window_seconds) for each in slower)]
    return sorted([*findings, *apart], key=lambda finding: finding.onset)


def not_asked_for(found: Iterable[tuple[Finding, str]]) -> str:
    """Sentence of the first finding that the client itself caused; empty where there is none."""
    return next((words for each, words in found if each.is_of_client), "")


def accounts_for(slower: Finding, undone: Finding, window_seconds: float) -> bool:
    """Whether a latency finding (`slower`) accounts for a stall or shortfall (`undone`): both began close together, or
    the shortfall began while operations were slower."""
    windows = TOGETHER_WINDOWS_OTHERWISE if undone.kind is FindingKind.STALL else EASED_WINDOWS
    if abs(slower.onset - undone.onset) <= windows * window_seconds:
        return True
    is_during = slower.onset <= undone.onset and (slower.until is None or slower.until > undone.onset)
    return undone.kind is FindingKind.SHORTFALL and is_during and slower.kind is not FindingKind.SPIKES
