"""Interface of the online judges, which take a run window by window; last version of each of a judge's findings."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from cliffwatch.analysis.finding import Finding, Sample


class Judge(Protocol):
    """Online judge: takes windows in order, returns findings."""

    def feed(self, sample: Sample) -> Sequence[Finding]:
        """Add a sample; returns new findings, and new versions of earlier ones (same series, kind and onset)."""

    @property
    def active(self) -> Sequence[Finding]:
        """Active findings, each with its current size."""


def last_versions(judge: Judge, samples: Iterable[Sample]) -> list[Finding]:
    """Each finding of a run in its last version, in order of detection."""
    findings: dict[tuple[str, str, float], Finding] = {}
    for sample in samples:
        for finding in judge.feed(sample):
            findings[finding.series, finding.kind, finding.onset] = finding
    for finding in judge.active:
        findings[finding.series, finding.kind, finding.onset] = finding
    return list(findings.values())
