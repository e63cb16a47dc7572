"""Last recorded version of a finding, and whether the finding has changed enough to be recorded again."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Any

from cliffwatch.analysis.finding import Finding
from cliffwatch.base.units import six_digits

#: A lasting finding is recorded again when the logarithm of its size has changed by more than this (about a fifth).
SIZE_MOVED = 0.18


@dataclass(frozen=True, slots=True)
class Stated:
    """Last recorded version of a finding: its series, its size, and the series that changed with it.

    For a stall or a shortfall (work that was not done), `ratio` and `worst_ratio` both hold its duration in seconds.
    """

    series: str
    ratio: float
    worst_ratio: float
    affected: frozenset[str]

    @classmethod
    def of(cls, finding: Finding) -> "Stated":
        affected = frozenset(size.series for size in finding.affected)
        if finding.undone is not None:
            return cls(finding.series, *(2 * (round(finding.undone.seconds, 3),)), affected)
        return cls(finding.series, six_digits(finding.ratio), six_digits(finding.worst / finding.baseline), affected)

    @classmethod
    def of_detail(cls, detail: Mapping[str, Any]) -> "Stated":
        affected = frozenset(str(each["series"]) for each in detail.get("affected", ()))
        if "undone" in detail:
            return cls(str(detail["series"]), *(2 * (float(detail["undone"]["seconds"]),)), affected)
        return cls(str(detail["series"]), float(detail["ratio"]), float(detail["worst_ratio"]), affected)

    def is_news_to(self, before: "Stated") -> bool:
        """Whether the finding changed since `before`: another series, another size, or a further affected series."""
        if self.series != before.series or self.affected - before.affected:
            return True
        moved = (log(self.ratio / before.ratio), log(self.worst_ratio / before.worst_ratio))
        return max(abs(each) for each in moved) > SIZE_MOVED
