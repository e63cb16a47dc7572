"""What looks at a run window by window, and what it has said of the whole of one."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from cliffwatch.analysis.finding import Finding, Sample


class Judge(Protocol):
    """Takes windows in order."""

    def feed(self, sample: Sample) -> Sequence[Finding]:
        """Findings that are new with this sample, and new versions of earlier ones (same series, kind and onset)."""

    @property
    def active(self) -> Sequence[Finding]:
        """What was found and is not over, each as large as it is by now."""


def last_versions(judge: Judge, samples: Iterable[Sample]) -> list[Finding]:
    """Each finding of a run in its last version, in order of detection."""
    findings: dict[tuple[str, str, float], Finding] = {}
    for sample in samples:
        for finding in judge.feed(sample):
            findings[finding.series, finding.kind, finding.onset] = finding
    for finding in judge.active:
        findings[finding.series, finding.kind, finding.onset] = finding
    return list(findings.values())
