"""Detection over a whole series, after the run: what changed, when exactly, how much."""

from collections.abc import Sequence

from cliffwatch.detect.finding import Finding, Notice, Sample, Series
from cliffwatch.detect.online import OnlineDetector


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


def analyse(
    series: Sequence[Series], samples: Sequence[Sample], notices: Sequence[Notice], window_seconds: float
) -> list[Finding]:
    """Every change for the worse (and back) in order of onset. Spans count windows of `window_seconds`."""
    return replay(series, samples, notices, window_seconds)
