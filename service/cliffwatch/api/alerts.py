"""/alerts: Alertmanager's webhook. Its alerts become events of the runs that it is about."""

import logging
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import AwareDatetime, BaseModel, Field, field_validator

from cliffwatch.app.alerts import FIRING, Alert
from cliffwatch.http.context import API_PREFIX, Context, Operator
from cliffwatch.http.route import ApiRoute
from cliffwatch.model.request import storable_text

router = APIRouter(prefix=API_PREFIX, route_class=ApiRoute, tags=["alerts"])
_LOG = logging.getLogger(__name__)
_EPOCH = datetime.fromtimestamp(0, UTC)
#: More than fit into the largest body that is taken.
_ALERTS_LIMIT = 5000
#: Of an alert's summary, of its description, and of all of its labels together: what a journal keeps, in characters.
_TEXT_LIMIT, _LABELS_LIMIT = 4096, 8192
#: The labels that say whose alert it is; they are kept before others.
_NAMING = ("run_id", "alertname", "severity")


class AlertBody(BaseModel):
    """An alert as Alertmanager sends it. What is not named here is not looked at."""

    status: Literal["firing", "resolved"]
    labels: dict[str, str]
    annotations: dict[str, str] = {}
    starts_at: Annotated[AwareDatetime, Field(alias="startsAt")]
    #: The year 1 where it has not ended.
    ends_at: Annotated[AwareDatetime | None, Field(alias="endsAt")] = None
    fingerprint: Annotated[str, Field(pattern=r"^[0-9A-Za-z]{1,64}$")]

    @field_validator("labels", "annotations")
    @classmethod
    def _make_storable(cls, texts: dict[str, str]) -> dict[str, str]:
        """A bundle holds no NUL and no half of a character, and one such text must not keep other alerts out."""
        return {storable_text(name): storable_text(text) for name, text in texts.items()}

    def to_alert(self) -> Alert:
        return Alert(
            name=self.labels.get("alertname") or "alert",
            status=self.status,
            fingerprint=self.fingerprint,
            starts_at=_seconds(self.starts_at),
            ends_at=None if self.status == FIRING or self.ends_at is None else _seconds(self.ends_at),
            severity=self.labels.get("severity", ""),
            summary=_cut(self.annotations.get("summary", "")),
            description=_cut(self.annotations.get("description", "")),
            labels=_kept(self.labels),
        )


class Notification(BaseModel):
    """The body of a webhook of Alertmanager's, version 4."""

    version: Literal["4"]
    truncated_alerts: Annotated[int, Field(alias="truncatedAlerts", ge=0)] = 0
    alerts: Annotated[list[AlertBody], Field(max_length=_ALERTS_LIMIT)]


class AlertsTaken(BaseModel):
    """What became of a notification: every alert is on disk, in a journal or kept for one.

    An alert that names no run counts once for each live run. `of_no_run` are those that no live run is concerned by;
    `left_out` are those of runs that have 2,000 alerts already.
    """

    received: int
    recorded: int
    repeated: int
    kept: int
    left_out: int
    of_no_run: int


@router.post("/alerts")
def take_alerts(notification: Notification, services: Context, caller: Operator) -> AlertsTaken:
    """Take a notification of Alertmanager's; one that comes twice is recorded once."""
    if notification.truncated_alerts:
        _LOG.warning("Alertmanager left %d alerts out of a notification", notification.truncated_alerts)
    taken = services.alerts.take([alert.to_alert() for alert in notification.alerts])
    return AlertsTaken(
        received=len(notification.alerts),
        recorded=taken.recorded,
        repeated=taken.repeated,
        kept=taken.kept,
        left_out=taken.left_out,
        of_no_run=taken.of_no_run,
    )


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
    """Seconds since the epoch, for any year that a timestamp may have."""
    return (moment - _EPOCH).total_seconds()
