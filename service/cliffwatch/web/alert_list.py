"""Page of all alerts: what each means, how severe it is, and for which runs it fires now."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request, Response

from cliffwatch.base.documents import load_yaml
from cliffwatch.base.resources import ALERTS_DIRECTORY
from cliffwatch.http.context import Context, Services
from cliffwatch.store.queries import unfinished_runs
from cliffwatch.web.firing import FollowedAlerts, of_no_run
from cliffwatch.web.page import PageRoute, show
from cliffwatch.web.runbooks import meaning_of, runbooks
from cliffwatch.web.session import AnyVisitor

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class ListedAlert:
    """An alert of the rules. `runs` are the live runs that it fires for; `fires` without any: it names no run."""

    name: str
    severity: str
    meaning: str
    fires: bool
    runs: tuple[str, ...]


@router.get("/runbooks")
def list_alerts(request: Request, services: Context, visitor: AnyVisitor) -> Response:
    """All alerts by name, each with the first sentence of its runbook; those that fire now come first."""
    firing = _firing(services, request.app.state.followed_alerts)
    listed = [
        ListedAlert(
            name,
            severities().get(name, ""),
            meaning_of(path.read_text(encoding="utf-8")),
            name in firing,
            tuple(sorted(firing.get(name, ()))),
        )
        for name, path in runbooks().items()
    ]
    return show(request, "runbooks.html", visitor, alerts=sorted(listed, key=lambda alert: not alert.fires))


@cache
def severities() -> Mapping[str, str]:
    """Severity of each alert, as the rules have it."""
    documents = [load_yaml(path.read_text(encoding="utf-8")) for path in (ALERTS_DIRECTORY / "rules").glob("*.yaml")]
    rules = [rule for document in documents for group in document["groups"] for rule in group["rules"]]
    return {rule["alert"]: rule["labels"]["severity"] for rule in rules if "alert" in rule}


def _firing(services: Services, followed: FollowedAlerts) -> dict[str, set[str]]:
    """Live runs by the alert that fires for them; no run for an alert that names none."""
    with services.database.snapshot() as session:
        by_run = {row.id: followed.of(Path(row.directory)) for row in unfinished_runs(session)}
    found: dict[str, set[str]] = {
        alert.name: set() for alert in of_no_run(services.alerts.standing(), list(by_run.values()))
    }
    for run_id, alerts in by_run.items():
        for alert in alerts:
            if alert.names_a_run:
                found.setdefault(alert.name, set()).add(run_id)
    return found
