"""Alerts of a run for the report: one entry for each time that an alert began to fire."""

from collections.abc import Iterable
from dataclasses import dataclass

from cliffwatch.journal import Event, EventType

_FIRING = "firing"


@dataclass(frozen=True, slots=True)
class AlertSpan:
    """An alert from `start` to `end`, in seconds since the epoch; `end` is None where it still fired as the run ended.

    `received` is when the service first received it.
    """

    name: str
    severity: str
    summary: str
    description: str
    start: float
    end: float | None
    received: float


def alert_spans(events: Iterable[Event]) -> list[AlertSpan]:
    """Alerts of a run in order of start, also those of which only the resolution was received."""
    spans: dict[tuple[str, float], AlertSpan] = {}
    for event in events:
        if event.type is not EventType.ALERT:
            continue
        start = event.moment("starts_at") or event.at
        key = (str(event.detail.get("fingerprint", event.name)), start)
        known = spans.get(key)
        resolved = event.detail.get("status", _FIRING) != _FIRING
        if known is not None and not resolved:
            continue
        spans[key] = AlertSpan(
            name=event.name,
            severity=str(event.detail.get("severity", "")),
            summary=str(event.detail.get("summary", "")),
            # The description from when the alert began to fire.
            description=str(event.detail.get("description", "")) if known is None else known.description,
            start=start,
            end=(event.moment("ends_at") or event.at) if resolved else None,
            received=event.at if known is None else known.received,
        )
    return sorted(spans.values(), key=lambda span: (span.start, span.name))
