"""/alerts: Alertmanager's webhook. Its alerts become events of the runs that it is about."""

import logging
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import AwareDatetime, BaseModel, Field

from cliffwatch.app.alerts import FIRING, Alert
from cliffwatch.http.context import API_PREFIX, Context, Operator
from cliffwatch.http.route import ApiRoute

router = APIRouter(prefix=API_PREFIX, route_class=ApiRoute, tags=["alerts"])
_LOG = logging.getLogger(__name__)
_EPOCH = datetime.fromtimestamp(0, UTC)
#: More than fit into the largest body that is taken.
_ALERTS_LIMIT = 5000


class AlertBody(BaseModel):
    """An alert as Alertmanager sends it. What is not named here is not looked at."""

    status: Literal["firing", "resolved"]
    labels: dict[str, str]
    annotations: dict[str, str] = {}
    starts_at: Annotated[AwareDatetime, Field(alias="startsAt")]
    #: The year 1 where it has not ended.
    ends_at: Annotated[AwareDatetime | None, Field(alias="endsAt")] = None
    fingerprint: Annotated[str, Field(pattern=r"^[0-9A-Za-z]{1,64}$")]

    def to_alert(self) -> Alert:
        return Alert(
            name=self.labels.get("alertname") or "alert",
            status=self.status,
            fingerprint=self.fingerprint,
            starts_at=_seconds(self.starts_at),
            ends_at=None if self.status == FIRING or self.ends_at is None else _seconds(self.ends_at),
            severity=self.labels.get("severity", ""),
            summary=self.annotations.get("summary", ""),
            description=self.annotations.get("description", ""),
            labels=self.labels,
        )


class Notification(BaseModel):
    """The body of a webhook of Alertmanager's, version 4."""

    version: Literal["4"]
    truncated_alerts: Annotated[int, Field(alias="truncatedAlerts", ge=0)] = 0
    alerts: Annotated[list[AlertBody], Field(max_length=_ALERTS_LIMIT)]


class AlertsTaken(BaseModel):
    """What became of a notification: every alert is on disk, in a journal or kept for one.

    An alert that names no run counts once for each live run. `of_no_run` are those that no live run is concerned by.
    """

    received: int
    recorded: int
    repeated: int
    kept: int
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
        of_no_run=taken.of_no_run,
    )


def _seconds(moment: datetime) -> float:
    """Seconds since the epoch, for any year that a timestamp may have."""
    return (moment - _EPOCH).total_seconds()
