"""Notifications as Alertmanager sends them."""

from typing import Any


def alert(run_id: str | None = "one", status: str = "firing", **changes: Any) -> dict[str, Any]:
    """As Alertmanager 0.25 sends one."""
    labels = {"alertname": "QueueFull", "severity": "warning"} | ({"run_id": run_id} if run_id else {})
    body = {
        "status": status,
        "labels": labels,
        "annotations": {"summary": "The queue is full.", "description": "97 % of it."},
        "startsAt": "2026-11-21T09:04:15.459123456Z",
        "endsAt": "0001-01-01T00:00:00Z" if status == "firing" else "2026-11-21T09:04:45.459Z",
        "generatorURL": "http://prometheus/graph?g0.expr=1",
        "fingerprint": "66a9e6437657060a",
    }
    return body | changes


def notification(*alerts: Any, **changes: Any) -> dict[str, Any]:
    return {
        "version": "4",
        "groupKey": '{}:{alertname="QueueFull"}',
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "cliffwatch",
        "groupLabels": {},
        "commonLabels": {},
        "commonAnnotations": {},
        "externalURL": "http://alertmanager",
        "alerts": list(alerts),
    } | changes
