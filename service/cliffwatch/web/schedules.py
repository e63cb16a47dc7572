"""Schedule pages: the list, and a form that adds one."""

from fastapi import APIRouter, Request, Response
from pydantic import ValidationError

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.http.context import Context, Services, ShortId
from cliffwatch.http.paging import LIST_LIMIT
from cliffwatch.http.schedule_resource import ScheduleBody, listed_schedules
from cliffwatch.http.workload_resource import listed_workloads
from cliffwatch.model.schedule import ScheduleChange, ScheduleRequest
from cliffwatch.model.trigger import fire_times
from cliffwatch.web.page import PageRoute, go_to, show
from cliffwatch.web.session import AnyVisitor, Form, Operating, Visitor
from cliffwatch.web.start import DURATIONS, TARGET_KINDS, order_document

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_KINDS = tuple(kind for kind in TARGET_KINDS if kind != "device")


@router.get("/schedules")
def show_schedules(request: Request, services: Context, visitor: AnyVisitor) -> Response:
    return _schedules(request, services, visitor, {})


@router.post("/schedules")
def add_schedule(request: Request, services: Context, visitor: Operating, form: Form) -> Response:
    try:
        services.schedules.create(_schedule(form), visitor.caller.name)
    except Problem as problem:
        return _schedules(request, services, visitor, form, problem)
    return go_to("/schedules")


@router.post("/schedules/{schedule_id}/enabled")
def enable_schedule(schedule_id: ShortId, services: Context, visitor: Operating, form: Form) -> Response:
    change = ScheduleChange(enabled=form.get("enabled") == "yes")
    services.schedules.change(schedule_id, change)
    return go_to("/schedules")


@router.post("/schedules/{schedule_id}/delete")
def delete_schedule(schedule_id: ShortId, services: Context, visitor: Operating) -> Response:
    services.schedules.delete(schedule_id)
    return go_to("/schedules")


def _schedule(form: dict[str, str]) -> ScheduleRequest:
    """Schedule request from a form. Raises Problem(bad_request) that names the fields at fault."""
    kind = form.get("target_kind", "")
    if kind not in _KINDS:
        raise Problem(
            Code.BAD_REQUEST,
            "the form is not valid",
            [
                FieldFault(
                    "target",
                    f"choose {', '.join(_KINDS)}; a drive wants its sentence typed, so use the command",
                )
            ],
        )
    body = {"name": form.get("name", ""), **order_document(form), "trigger": _trigger(form)}
    try:
        return ScheduleRequest.model_validate(body)
    except ValidationError as error:
        raise Problem(Code.BAD_REQUEST, "the form is not valid", faults_of(error)) from error


def _trigger(form: dict[str, str]) -> dict[str, str]:
    """The form's trigger, for the API. Raises Problem(bad_request) unless exactly one of its three fields is filled."""
    given = {name: text for name in ("every", "at", "expression") if (text := form.get(name, "").strip())}
    if len(given) != 1:
        fault = FieldFault("trigger", "fill exactly one of: every, once at, cron expression")
        raise Problem(Code.BAD_REQUEST, "the form is not valid", [fault])
    if "every" in given:
        return {"kind": "interval", **given}
    if "at" in given:
        # Browsers send a date and a time without a zone.
        return {"kind": "date", "at": given["at"] if given["at"].endswith("Z") else f"{given['at']}Z"}
    return {"kind": "cron", **given, "time_zone": form.get("time_zone", "").strip() or "UTC"}


def _is_spent(schedule: ScheduleBody, now: float) -> bool:
    """Whether a schedule will never fire again, even when enabled, so that it can only be removed."""
    return schedule.trigger is not None and not fire_times(schedule.trigger.trigger(), now, 1)


def _schedules(
    request: Request, services: Services, visitor: Visitor, form: dict[str, str], problem: Problem | None = None
) -> Response:
    listed = listed_schedules(services, LIST_LIMIT).items
    now = services.clock.wall()
    return show(
        request,
        "schedules.html",
        visitor,
        200 if problem is None else problem.kind.status,
        schedules=listed,
        spent={schedule.id for schedule in listed if _is_spent(schedule, now)},
        workloads=listed_workloads(services, LIST_LIMIT).items,
        target_kinds=_KINDS,
        durations=DURATIONS,
        has_details=any(form.get(name) for name in ("labels", "drives", "prometheus", *DURATIONS)),
        form=form,
        problem=problem,
    )
