"""Replay online detection over a whole run, and match its findings with those of offline detection."""

from collections.abc import Sequence
from dataclasses import replace

from cliffwatch.analysis.finding import SUDDEN, Finding, FindingKind, Notice, Sample, Series
from cliffwatch.analysis.online.detector import OnlineDetector
from cliffwatch.analysis.online.judge import last_versions
from cliffwatch.analysis.online.run_detector import RunDetector
from cliffwatch.analysis.thresholds import EARLY_WINDOWS, EASED_WINDOWS


def replay(
    series: Sequence[Series], samples: Sequence[Sample], notices: Sequence[Notice], window_seconds: float
) -> list[Finding]:
    """Findings that online detection raises over a whole run, each in its last version, in order of detection."""
    return last_versions(RunDetector(series, window_seconds, notices), samples)


def replayed_changes(
    series: Sequence[Series], samples: Sequence[Sample], notices: Sequence[Notice], window_seconds: float
) -> list[Finding]:
    """Findings of `OnlineDetector`, replayed over a whole run, each in its last version; no stalls or rare spikes."""
    return last_versions(OnlineDetector(series, window_seconds, notices), samples)


def with_detection(findings: Sequence[Finding], raised: Sequence[Finding], window_seconds: float) -> list[Finding]:
    """Findings, each with the moment at which online detection raised it. A finding whose raised
    change `eased_before` gets the onset of that change."""
    left = [one for one in raised if one.kind is not FindingKind.RECOVERY]
    reported = []
    for finding in findings:
        mine = [one for one in left if _is_of(one, finding, window_seconds)]
        first = min(mine, key=lambda one: one.detected or 0.0, default=None)
        if first is not None and finding.kind is not FindingKind.RECOVERY:
            left.remove(first)
            onset = first.onset if eased_before(first, finding, window_seconds) else finding.onset
            reported.append(replace(finding, detected=first.detected, onset=onset))
        else:
            reported.append(finding)
    return reported


def belongs_to(raised: Finding, finding: Finding, window_seconds: float) -> bool:
    """Whether a raised finding and a finding of the whole run are one change, by kind and onset, and so share sizes.

    A sudden raised change that was over before the finding began was a different one, such as a burst.
    """
    is_same_kind = raised.kind == finding.kind or {raised.kind, finding.kind} <= SUDDEN
    early = EARLY_WINDOWS * window_seconds
    if raised.kind in SUDDEN and raised.until is not None and raised.until < finding.onset - early:
        return False
    is_near = raised.kind is FindingKind.DRIFT or abs(raised.onset - finding.onset) <= EASED_WINDOWS * window_seconds
    return is_same_kind and is_near


def _is_of(raised: Finding, finding: Finding, window_seconds: float) -> bool:
    early = EARLY_WINDOWS * window_seconds
    if raised.detected is None:
        return False
    if raised.detected < finding.onset - early:
        return eased_before(raised, finding, window_seconds)
    return finding.until is None or raised.detected <= finding.until + early


def eased_before(raised: Finding, finding: Finding, window_seconds: float) -> bool:
    """Whether a change raised shortly before a finding's onset still lasted then: both are one change, which began at
    the raised onset.

    The latency rose, eased without being healthy again, and rose further; the whole run shows the further rise best.
    """
    is_before = raised.detected is not None and raised.detected < finding.onset
    is_near = finding.onset - raised.onset <= EASED_WINDOWS * window_seconds
    lasted = raised.until is None or raised.until > finding.onset
    return is_before and is_near and lasted and {raised.kind, finding.kind} <= SUDDEN
