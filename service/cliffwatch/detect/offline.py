"""Detection over a whole series, after the run: what changed, when exactly, how much."""

from collections.abc import Sequence
from dataclasses import replace

from cliffwatch.detect.finding import Finding, Kind, Notice, Sample, Series
from cliffwatch.detect.online import OnlineDetector

#: Online detection may see the device before the client by so many windows.
EARLY_WINDOWS = 12


def replay(
    series: Sequence[Series], samples: Sequence[Sample], notices: Sequence[Notice], window_seconds: float
) -> list[Finding]:
    """What online detection would have said, each finding in its last version, in order of detection."""
    detector = OnlineDetector(series, window_seconds)
    pending = sorted(notices, key=lambda notice: notice.at)
    findings: dict[tuple[str, str, float], Finding] = {}
    for sample in samples:
        while pending and pending[0].at < sample.end:
            detector.notice(pending.pop(0))
        for finding in detector.feed(sample):
            findings[finding.series, finding.kind, finding.onset] = finding
    return list(findings.values())


def with_detection(findings: Sequence[Finding], raised: Sequence[Finding], window_seconds: float) -> list[Finding]:
    """Each finding with the moment at which online detection raised it: the first after its onset that is its own."""
    left = [one for one in raised if one.kind is not Kind.RECOVERY]
    told = []
    for finding in findings:
        early = EARLY_WINDOWS * window_seconds
        mine = [one for one in left if one.detected is not None and _same(one, finding, early)]
        first = min(mine, key=lambda one: one.detected or 0.0, default=None)
        if first is not None:
            left.remove(first)
            finding = replace(finding, detected=first.detected)
        told.append(finding)
    return told


def _same(raised: Finding, finding: Finding, early: float) -> bool:
    over = finding.until is not None and raised.detected is not None and raised.detected > finding.until + early
    return raised.detected is not None and raised.detected >= finding.onset - early and not over


def analyse(
    series: Sequence[Series], samples: Sequence[Sample], notices: Sequence[Notice], window_seconds: float
) -> list[Finding]:
    """Every change for the worse (and back) in order of onset. Spans count windows of `window_seconds`."""
    return replay(series, samples, notices, window_seconds)
