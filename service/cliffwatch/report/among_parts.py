"""A part whose latency changed, beside the other parts of its run at the same time."""

from dataclasses import dataclass
from statistics import median

from cliffwatch.analysis.finding import SUDDEN, Finding, FindingKind
from cliffwatch.analysis.thresholds import AFFECTED_FROM
from cliffwatch.base.units import format_ratio
from cliffwatch.model.part_names import of_part, split_part
from cliffwatch.report.collect import Collected
from cliffwatch.report.onset_spans import Windows, spans_around


@dataclass(frozen=True, slots=True)
class AmongParts:
    """Level of one part since an onset, divided by the median of the other parts' levels in the same windows; and the
    names of the other parts that rose at the onset, too."""

    ratio_to_others: float
    others_risen: tuple[str, ...]

    @property
    def words(self) -> str:
        """Clause of the finding's sentence; empty where others rose, which the sentence or its series name."""
        if self.others_risen or self.ratio_to_others < AFFECTED_FROM:
            return ""
        return f", to {format_ratio(self.ratio_to_others)} the others, none of which rose"


def among_parts(run: Collected, finding: Finding) -> AmongParts | None:
    """Compare the part that a lasting change is about with the others; None for any other finding, and where no other
    part has the same latency."""
    latency, _, quantile = finding.series.rpartition(".")
    part, operation = split_part(latency)
    if run.order is None or part not in run.order.parts or finding.kind not in SUDDEN | {FindingKind.DRIFT}:
        return None
    spans = spans_around(run.windows, finding)

    def level(windows: Windows, of: str) -> float | None:
        values = (window.latency.get(of_part(of, operation), {}).get(quantile) for window in windows)
        return median(known) if (known := [value for value in values if value]) else None

    own = level(spans.after, part)
    before = {other: level(spans.before, other) for other in run.order.parts if other != part}
    after = {other: since for other in before if (since := level(spans.after, other))}
    if not own or not after:
        return None
    risen = tuple(other for other, since in after.items() if since >= AFFECTED_FROM * (before[other] or since))
    return AmongParts(own / median(after.values()), risen)
