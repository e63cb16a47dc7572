"""/alerts: Alertmanager's webhook. Each alert becomes an event of the runs that it is about."""

import hashlib
import json
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import AwareDatetime, BaseModel, Field, ValidationError, field_validator

from cliffwatch.app.alerts import FIRING, Alert
from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.base.storable import storable_text
from cliffwatch.http.context import API_PREFIX, Context, Operator
from cliffwatch.http.route import ApiRoute

router = APIRouter(prefix=API_PREFIX, route_class=ApiRoute, tags=["alerts"])
_LOG = logging.getLogger(__name__)
_EPOCH = datetime.fromtimestamp(0, UTC)
#: Maximum number of alerts: more than fit into the largest body that is accepted.
_ALERTS_LIMIT = 5000
#: Maximum characters that a journal keeps of an alert: of its summary and description each, of all labels together.
_TEXT_LIMIT, _LABELS_LIMIT = 4096, 8192
#: Labels that identify the alert and its run; if labels exceed the limit, these are kept before others.
_NAMING = ("run_id", "alertname", "severity")


class AlertBody(BaseModel):
    """An alert as Alertmanager sends it. Other fields are ignored.

    Without a `fingerprint`, as before Alertmanager 0.19, an alert is identified by its labels.
    """

    status: Literal["firing", "resolved"]
    labels: dict[str, str]
    annotations: dict[str, str] = {}
    starts_at: Annotated[AwareDatetime, Field(alias="startsAt")]
    #: The year 1 if the alert has not ended.
    ends_at: Annotated[AwareDatetime | None, Field(alias="endsAt")] = None
    fingerprint: Annotated[str | None, Field(pattern=r"^[0-9A-Za-z]{1,64}$")] = None

    @field_validator("labels", "annotations")
    @classmethod
    def _make_storable(cls, texts: dict[str, str]) -> dict[str, str]:
        """Replace NUL and lone surrogates, which a bundle cannot hold: one bad text must not block other alerts."""
        return {storable_text(name): storable_text(text) for name, text in texts.items()}

    def to_alert(self) -> Alert:
        return Alert(
            name=self.labels.get("alertname") or "alert",
            status=self.status,
            fingerprint=self.fingerprint or _fingerprint(self.labels),
            starts_at=_seconds(self.starts_at),
            ends_at=None if self.status == FIRING or self.ends_at is None else _seconds(self.ends_at),
            severity=self.labels.get("severity", ""),
            summary=_cut(self.annotations.get("summary", "")),
            description=_cut(self.annotations.get("description", "")),
            labels=_kept(self.labels),
        )


class Notification(BaseModel):
    """The body of a webhook: version 4 is Alertmanager's, version 1 that of Grafana's own alerting.

    A malformed alert is refused alone; the others are accepted.
    """

    version: Literal["1", "4"]
    truncated_alerts: Annotated[int, Field(alias="truncatedAlerts", ge=0)] = 0
    alerts: Annotated[
        list[Annotated[AlertBody | Any, Field(union_mode="left_to_right")]], Field(max_length=_ALERTS_LIMIT)
    ]


class AlertsTaken(BaseModel):
    """Result of a notification, as numbers of alerts. The recorded ones are in the journals of their runs.

    An alert that names no run counts once for each live run. `of_no_run` counts alerts that concern no live run;
    `left_out` counts alerts of runs that have 2,000 alerts already.
    """

    received: int
    recorded: int
    repeated: int
    left_out: int
    of_no_run: int


@router.post("/alerts")
def take_alerts(notification: Notification, services: Context, caller: Operator) -> AlertsTaken:
    """Accept a notification; if it comes twice, it is recorded once. Malformed alerts are refused, and the answer names
    their fields; the other alerts are recorded."""
    if notification.truncated_alerts:
        _LOG.warning("Alertmanager left %d alerts out of a notification", notification.truncated_alerts)
    alerts = [alert for alert in notification.alerts if isinstance(alert, AlertBody)]
    taken = services.alerts.take([alert.to_alert() for alert in alerts])
    if faults := _faults_in(notification.alerts):
        raise Problem(Code.BAD_REQUEST, f"{len(alerts)} of {len(notification.alerts)} alerts were taken", faults)
    return AlertsTaken(
        received=len(notification.alerts),
        recorded=taken.recorded,
        repeated=taken.repeated,
        left_out=taken.left_out,
        of_no_run=taken.of_no_run,
    )


def _faults_in(alerts: Sequence[AlertBody | Any]) -> list[FieldFault]:
    faults: list[FieldFault] = []
    for place, alert in enumerate(alerts):
        if not isinstance(alert, AlertBody):
            try:
                AlertBody.model_validate(alert)
            except ValidationError as error:
                faults += faults_of(error, f"alerts.{place}")
    return faults


def _fingerprint(labels: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(labels, sort_keys=True).encode()).hexdigest()[:16]


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_LIMIT else f"{text[: _TEXT_LIMIT - 1]}…"


def _kept(labels: dict[str, str]) -> dict[str, str]:
    room, kept = _LABELS_LIMIT, {}
    for name in sorted(labels, key=lambda name: name not in _NAMING):
        room -= len(name) + len(labels[name])
        if room < 0:
            break
        kept[name] = labels[name]
    return kept


def _seconds(moment: datetime) -> float:
    """Convert a time of any year, even the year 1, to seconds since the epoch."""
    return (moment - _EPOCH).total_seconds()
