"""Pages of all alerts and of each one's runbook: what it means, how severe it is, and for which runs it fires now."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request, Response

from cliffwatch.base.documents import load_yaml
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.resources import ALERTS_DIRECTORY
from cliffwatch.http.context import Context, Services, find_run
from cliffwatch.store.queries import unfinished_runs
from cliffwatch.web.firing import FollowedAlerts, of_no_run
from cliffwatch.web.page import PageRoute, show
from cliffwatch.web.runbooks import meaning_of, plain_labels, rendered, runbooks, values_of
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
    listed = [_listed(name, path.read_text(encoding="utf-8"), firing) for name, path in runbooks().items()]
    return show(request, "runbooks.html", visitor, alerts=sorted(listed, key=lambda alert: not alert.fires))


@router.get("/runbooks/{alert}")
def show_runbook(request: Request, alert: str, services: Context, visitor: AnyVisitor) -> Response:
    """The runbook of an alert. The address's labels replace the placeholders of its commands."""
    path = runbooks().get(alert)
    if path is None:
        raise Problem(Code.NOT_FOUND, f"no alert is named {alert!r}; /runbooks lists them")
    labels = plain_labels(request.query_params)
    run_id, text = labels.get("run_id"), path.read_text(encoding="utf-8")
    return show(
        request,
        "runbook.html",
        visitor,
        alert=_listed(alert, text, _firing(services, request.app.state.followed_alerts)),
        run_id=run_id,
        verdict=None if run_id is None else _verdict_of(services, run_id),
        text=rendered(text, values_of(services.settings, labels)),
    )


def _listed(name: str, text: str, firing: Mapping[str, set[str]]) -> ListedAlert:
    """An alert with the text of its runbook. `firing`: live runs by the alerts that fire now."""
    runs = tuple(sorted(firing.get(name, ())))
    return ListedAlert(name, severities().get(name, ""), meaning_of(text), name in firing, runs)


def _verdict_of(services: Services, run_id: str) -> str | None:
    """Verdict of a run that is over; None for one that goes on, or that is not known here."""
    try:
        return find_run(services, run_id).verdict
    except Problem as problem:
        if problem.code is not Code.NOT_FOUND:
            raise
        return None


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
