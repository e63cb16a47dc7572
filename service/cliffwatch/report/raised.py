"""Final findings of a run, for its finish event: displays of live findings then show the report's findings instead.

A finding that was raised during the run is identified by its kind, series and onset as raised. A finding that only the
whole run shows gets an event of its own, so that lists of findings include it. A finding that was raised and that the
whole run does not confirm is listed as not confirmed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cliffwatch.analysis.journal_series import ENDED_NOTE, UPDATED_NOTE, FindingKey, key_in
from cliffwatch.analysis.wording import details_of
from cliffwatch.base.units import six_digits
from cliffwatch.journal import Event, EventType
from cliffwatch.report.findings import ReportedFinding, is_about

#: Maximum number of findings in the event: where there are more, one says little. The report has all of them.
RAISED_LIMIT = 50
_KEYS = ("kind", "series", "onset")


def final_findings(
    found: Iterable[ReportedFinding], events: Sequence[Event], window_seconds: float
) -> list[dict[str, Any]]:
    """Each finding of the report, with times in seconds since the epoch. `raised`: its kind, series and onset as raised
    during the run; absent where it was not raised."""
    raised = _raised(events)
    rows = []
    for each in found:
        mine = (one for one in raised if one.at == each.finding.detected)
        event = next((one for one in mine if is_about(one, each.finding, window_seconds)), None)
        named = {}
        if event is not None:
            raised.remove(event)
            named = {"raised": _name_of(event)}
        rows.append(named | _fields(each))
    return rows[:RAISED_LIMIT]


def not_confirmed(unconfirmed: Iterable[Event]) -> list[dict[str, Any]]:
    """Findings that were raised during the run and are not in its report."""
    rows = []
    for event in _raised(unconfirmed):
        summary = str(event.detail.get("summary") or event.name)
        said = f"Not confirmed by the whole run: {summary[0].lower()}{summary[1:]}"
        rows.append({"raised": _name_of(event), "confirmed": False, "summary": said})
    return rows[:RAISED_LIMIT]


def restated(events: Sequence[Event], found: Iterable[ReportedFinding], window_seconds: float) -> list[Event]:
    """Events in which each finding, and its end, has the figures and the sentence of the report, without the updates of
    findings: one change has one size."""
    final = {_key_of(row["raised"]): row for row in final_findings(found, events, window_seconds) if "raised" in row}
    kept = (event for event in events if (event.type, event.name) != (EventType.NOTE, UPDATED_NOTE))
    return [_restated(event, final.get(key_in(event.detail) or ("", "", 0.0))) for event in kept]


def _restated(event: Event, row: dict[str, Any] | None) -> Event:
    is_of_finding = event.type is EventType.FINDING or (event.type, event.name) == (EventType.NOTE, ENDED_NOTE)
    if row is None or not is_of_finding:
        return event
    said = {name: value for name, value in row.items() if name not in ("raised", "onset", "until")}
    return replace(event, detail=event.detail | said)


def _key_of(named: Mapping[str, Any]) -> FindingKey:
    return named["kind"], named["series"], named["onset"]


def _raised(events: Iterable[Event]) -> list[Event]:
    return [event for event in events if event.type is EventType.FINDING and key_in(event.detail) is not None]


def _name_of(event: Event) -> dict[str, Any]:
    return dict(zip(_KEYS, key_in(event.detail) or (), strict=True))


def _fields(each: ReportedFinding) -> dict[str, Any]:
    finding, series = each.finding, each.series
    body: dict[str, Any] = {"kind": finding.kind.value, "series": series.name, "onset": finding.onset}
    figures = {"baseline": finding.baseline, "level": finding.level, "ratio": finding.ratio}
    if finding.size is not None:
        figures |= {"worst": finding.size.worst, "worst_ratio": finding.size.worst_ratio}
    body |= {name: six_digits(value) for name, value in (figures | {"confidence": finding.confidence}).items()}
    body |= details_of(finding)
    names = {"operation": series.operation, "quantile": series.quantile, "until": finding.until}
    return body | {"summary": each.sentence} | {name: value for name, value in names.items() if value is not None}
