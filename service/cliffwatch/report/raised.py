"""What became of the findings that were raised while a run went on: each as the whole run, and so its report, has it.

The event that finishes a run carries them, so that whatever showed a finding live can show the report's.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from cliffwatch.analysis.journal_series import key_in
from cliffwatch.base.units import six_digits
from cliffwatch.journal import Event, EventType
from cliffwatch.report.findings import ReportedFinding

#: More are not findings any more but the run's state; the report has them all.
RAISED_LIMIT = 50
_KEYS = ("kind", "series", "onset")


def raised_findings(found: Iterable[ReportedFinding], events: Sequence[Event]) -> list[dict[str, Any]]:
    """`raised` names a finding as it was raised; the rest is the report's, with times in seconds since the epoch."""
    raised = {
        event.at: event for event in events if event.type is EventType.FINDING and set(_KEYS) <= set(event.detail)
    }
    rows = []
    for each in found:
        event = raised.get(each.finding.detected) if each.finding.detected is not None else None
        if event is not None:
            rows.append({"raised": dict(zip(_KEYS, key_in(event.detail), strict=True))} | _restated_fields(each))
    return rows[:RAISED_LIMIT]


def _restated_fields(each: ReportedFinding) -> dict[str, Any]:
    finding, series = each.finding, each.series
    body: dict[str, Any] = {"kind": finding.kind.value, "series": series.name, "onset": finding.onset}
    figures = {"baseline": finding.baseline, "level": finding.level, "ratio": finding.ratio}
    if finding.size is not None:
        figures |= {"worst": finding.size.worst, "worst_ratio": finding.size.worst_ratio}
    body |= {name: six_digits(value) for name, value in figures.items()}
    names = {"operation": series.operation, "quantile": series.quantile, "until": finding.until}
    return body | {"summary": each.sentence} | {name: value for name, value in names.items() if value is not None}
