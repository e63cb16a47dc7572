"""Replay online detection over a whole run, and match its findings with those of offline detection."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cliffwatch.analysis.finding import SUDDEN, Finding, FindingKind, Notice, Sample, Series
from cliffwatch.analysis.online.judge import LastVersions
from cliffwatch.analysis.online.run_detector import RunDetector
from cliffwatch.analysis.thresholds import EARLY_WINDOWS, EASED_WINDOWS


@dataclass(frozen=True, slots=True)
class Replayed:
    """Findings of online detection over a whole run: those that it reports, and those of each of its detectors, also
    where another finding accounts for them. Each is in its last version, in order of detection."""

    reported: list[Finding]
    changes: list[Finding]
    rare: list[Finding]
    recurring: list[Finding]
    undone: list[Finding]


def replayed(
    series: Sequence[Series], samples: Sequence[Sample], notices: Sequence[Notice], window_seconds: float
) -> Replayed:
    """Replay online detection over a whole run."""
    detector, reported = RunDetector(series, window_seconds, notices), LastVersions()
    by_judge = [LastVersions() for _ in detector.judges]
    for sample in samples:
        found = detector.judged(sample)
        if any(found):
            for versions, new in zip(by_judge, found, strict=True):
                versions.add(new)
            reported.add(detector.reported([finding for new in found for finding in new]))
    for versions, judge in zip(by_judge, detector.judges, strict=True):
        versions.add(judge.active)
    reported.add(detector.active)
    return Replayed(reported.in_order(), *(versions.in_order() for versions in by_judge))


def replay(
    series: Sequence[Series], samples: Sequence[Sample], notices: Sequence[Notice], window_seconds: float
) -> list[Finding]:
    """Findings that online detection reports over a whole run, each in its last version, in order of detection."""
    return replayed(series, samples, notices, window_seconds).reported


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
