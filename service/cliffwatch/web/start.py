"""Start page of a run: a form, the safety gate's answer to it, and only then the start.

The answer is the API's dry run. The gate checks the same fields again when the run is started, so the run is the one
that was shown, or the refusal says what changed.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import ValidationError

from cliffwatch.app.repeat import request_of, stored_workload
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.faults import NAME_PATTERN, faults_of
from cliffwatch.http.context import Context, Services, find_run
from cliffwatch.http.paging import LIST_LIMIT
from cliffwatch.http.plan_resource import PlanBody, plan_body
from cliffwatch.http.workload_resource import listed_workloads
from cliffwatch.model.phase import Phase
from cliffwatch.model.request import RunRequest
from cliffwatch.web.library_pages import labels_in
from cliffwatch.web.page import HEADERS, PageRoute, go_to, show
from cliffwatch.web.session import AnyVisitor, Form, Operating, Visitor

router = APIRouter(route_class=PageRoute, include_in_schema=False)
#: By kind of target: the field that names it, and the hint for it in the form.
TARGET_KINDS = {
    "directory": ("path", "a directory, such as /mnt/test; the run's files go below it"),
    "device": ("identity", "a drive's serial or WWN, as the page of drives lists it; everything on it is lost"),
    "broker": ("bootstrap_servers", "host:port of a broker, several with commas between"),
    "postgres": ("dsn", "postgresql://USER@HOST:PORT/DATABASE of an empty database"),
    "observed": ("name", "any name, for a system that others load; only its metrics are read"),
    "synthetic": ("name", "any name; no drive is used"),
}
DURATIONS = ("window", *(phase.value for phase in Phase if phase is not Phase.PREPARE))


@router.get("/start")
def show_form(
    request: Request,
    services: Context,
    visitor: AnyVisitor,
    workload: str = "",
    device: str = "",
    again: Annotated[str | None, Query(pattern=NAME_PATTERN)] = None,
) -> Response:
    """Form to start a run. `device`: a drive's serial or WWN to fill in; `again`: a run whose request fills it in."""
    form = {"workload": workload, "target_kind": "device" if device else "directory", "target": device}
    if not device:
        found = [each.target_kinds for each in listed_workloads(services, LIST_LIMIT).items if each.name == workload]
        form["target_kind"] = next((kind for kind in TARGET_KINDS if found and kind in found[0]), "directory")
    if again is not None:
        row = find_run(services, again)
        form = _as_before(again, request_of(row), stored_workload(row, services.workloads))
    return _form(request, services, visitor, form)


def _as_before(run_id: str, asked: RunRequest, workload: str | None) -> dict[str, str]:
    """Fields of the form for an earlier run's request. Raises Problem(bad_request) where the form cannot hold it."""
    beyond = {
        "several targets": bool(asked.more_targets),
        "a workload that came with its request, and is no stored version": workload is None,
    }
    if why := next((what for what, is_there in beyond.items() if is_there), None):
        detail = f"run {run_id} has {why}, which this form cannot start: `cliffwatch run again {run_id}` can"
        raise Problem(Code.BAD_REQUEST, detail)
    target = asked.target.model_dump(mode="json")
    place = target[TARGET_KINDS[asked.target.kind][0]]
    return {
        "workload": workload or "",
        "target_kind": asked.target.kind,
        "target": ",".join(place) if isinstance(place, list) else place,
        "labels": "\n".join(f"{name}={value}" for name, value in asked.labels.items()),
        "drives": asked.drives.selector if asked.drives else "",
        "prometheus": (asked.drives and asked.drives.server) or "",
        **asked.durations.model_dump(mode="json", exclude_none=True),
    }


@router.post("/start")
def check_or_start(request: Request, services: Context, visitor: Operating, form: Form) -> Response:
    """Check or start a run: the form's `action` is `check` for the dry run and `start` for the run itself."""
    try:
        order = _order(form)
        if form.get("action") == "start":
            run_id, _ = services.runs.submit(order, visitor.caller.name)
            return _to_run(request, run_id)
        return _form(request, services, visitor, form, plan=plan_body(order, services.runs.plan(order, None)))
    except Problem as problem:
        return _form(request, services, visitor, form, problem=problem)


def _to_run(request: Request, run_id: str) -> Response:
    """Redirect to the run's page, also from a form that a script sent."""
    path = f"/runs/{run_id}"
    if request.headers.get("hx-request") == "true":
        return Response(status_code=204, headers={**HEADERS, "HX-Redirect": path})
    return go_to(path)


def target_of(kind: str, form: dict[str, str]) -> dict[str, Any]:
    """Target for the API, from a form's `target` field; of an unknown kind, only `kind`."""
    if kind not in TARGET_KINDS:
        return {"kind": kind}
    place = form.get("target", "").strip()
    return {"kind": kind, TARGET_KINDS[kind][0]: place.split(",") if kind == "broker" else place}


def drives_of(form: dict[str, str]) -> dict[str, Any] | None:
    """Drives of other hosts for the API, from a form's `drives` (a selector, with or without `prometheus:` before it)
    and `prometheus`; None where both are empty."""
    selector, server = form.get("drives", "").strip().removeprefix("prometheus:"), form.get("prometheus", "").strip()
    return {"selector": selector, "server": server or None} if selector or server else None


def order_document(form: dict[str, str]) -> dict[str, Any]:
    """Run request of a form, for the API, unchecked. Raises Problem(bad_request) for labels that cannot be read."""
    return {
        "workload": form.get("workload", ""),
        "target": target_of(form.get("target_kind", ""), form),
        "durations": {name: form[name].strip() for name in DURATIONS if form.get(name, "").strip()},
        "labels": labels_in(form),
        "drives": drives_of(form),
    }


def _order(form: dict[str, str]) -> RunRequest:
    """Run request from a form. Raises Problem(bad_request) that names the fields at fault."""
    document = order_document(form)
    if document["target"]["kind"] == "device" and form.get("confirmation"):
        document["target"]["confirmation"] = form["confirmation"].strip()
    try:
        return RunRequest.model_validate(document)
    except ValidationError as error:
        raise Problem(Code.BAD_REQUEST, "the form is not valid", faults_of(error)) from error


def _form(
    request: Request,
    services: Services,
    visitor: Visitor,
    form: dict[str, str],
    plan: PlanBody | None = None,
    problem: Problem | None = None,
) -> Response:
    known = listed_workloads(services, LIST_LIMIT).items
    return show(
        request,
        "start.html",
        visitor,
        200 if problem is None else problem.kind.status,
        form=form,
        workloads=known,
        target_kinds=TARGET_KINDS,
        durations=DURATIONS,
        has_details=any(form.get(name) for name in ("labels", "drives", "prometheus", *DURATIONS)),
        plan=plan,
        ends=None if plan is None else services.clock.wall() + plan.planned_seconds,
        problem=problem,
    )
