"""Interface of the online judges, which take a run window by window; last version of each of a judge's findings."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from cliffwatch.analysis.finding import Finding, FindingKind, Sample


class Judge(Protocol):
    """Online judge: takes windows in order, returns findings."""

    def feed(self, sample: Sample, is_judged: bool) -> Sequence[Finding]:
        """Add a sample, which does not count unless `is_judged`; returns new findings, and new versions of earlier ones
        (same series, kind and onset)."""

    @property
    def active(self) -> Sequence[Finding]:
        """Active findings, each with its current size."""


class LastVersions:
    """Findings of a run, each in its last version."""

    def __init__(self) -> None:
        self._findings: dict[tuple[str, FindingKind, float], Finding] = {}

    def add(self, findings: Iterable[Finding]) -> None:
        """Add findings, and new versions of earlier ones (same series, kind and onset)."""
        for finding in findings:
            self._findings[finding.series, finding.kind, finding.onset] = finding

    def in_order(self) -> list[Finding]:
        """The findings in order of detection."""
        return list(self._findings.values())
