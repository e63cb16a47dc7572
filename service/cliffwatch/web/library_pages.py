"""Library of runs: forms that annotate or delete a run, and the page of differences between two runs."""

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import ValidationError

from cliffwatch.app.differences import differences_of
from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.http.context import Context, RunId, find_run
from cliffwatch.model.annotations import AnnotationsChange, parse_labels
from cliffwatch.model.document import Name
from cliffwatch.store.queries import runs_page
from cliffwatch.web.page import EMPTY_IS_NONE, PageRoute, go_to, show
from cliffwatch.web.run_pages import RefusedForm, run_page
from cliffwatch.web.session import AnyVisitor, Form, Operating

router = APIRouter(route_class=PageRoute, include_in_schema=False)
#: Maximum number of runs of the same workload that are offered for comparison, the newest ones.
_OFFERED = 50


@router.get("/runs/{run_id}/differences")
def show_differences(
    request: Request,
    run_id: RunId,
    services: Context,
    visitor: AnyVisitor,
    other: Annotated[Name | None, EMPTY_IS_NONE] = None,
) -> Response:
    """Page of differences from the run `other`; by default from the workload's newest pinned run, or else from the run
    before."""
    row = find_run(services, run_id)
    with services.database.snapshot() as session:
        known = [each for each in runs_page(session, _OFFERED, workload=row.workload_name) if each.id != run_id]
    before = [each for each in known if each.created_at <= row.created_at]
    usual = next(iter([*(each for each in known if each.pinned), *before, *known]), None)
    second = usual if other is None else find_run(services, other)
    return show(
        request,
        "differences.html",
        visitor,
        run=row,
        other=second,
        known=[each.id for each in known],
        found=None if second is None else differences_of(row, second),
    )


@router.post("/runs/{run_id}/annotations")
def annotate(request: Request, run_id: RunId, services: Context, visitor: Operating, form: Form) -> Response:
    """Change only the annotations that were edited in the form; those that others changed meanwhile stay.

    A form with a fault is shown again with all that was typed.
    """
    row = find_run(services, run_id)
    try:
        services.library.annotate(run_id, _change_in(form), visitor.caller.name)
    except Problem as problem:
        if problem.code is not Code.BAD_REQUEST:
            raise
        return run_page(request, row, services, visitor, RefusedForm(form, problem))
    return go_to(f"/runs/{run_id}")


def _change_in(form: dict[str, str]) -> AnnotationsChange:
    """What was edited in the form. Raises Problem(bad_request) that names the fields."""
    before, after = labels_in(form, "labels_before"), labels_in(form, "labels")
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    change: dict[str, Any] = {"labels": {name: None for name in before if name not in after} | changed}
    if (note := _note_in(form, "note")) != _note_in(form, "note_before"):
        change["note"] = note
    is_pinned = form.get("pinned") == "yes"
    if is_pinned is not (form.get("pinned_before") == "yes"):
        change["pinned"] = is_pinned
    try:
        return AnnotationsChange.model_validate(change)
    except ValidationError as error:
        raise Problem(Code.BAD_REQUEST, "the form is not valid", faults_of(error)) from error


@router.post("/runs/{run_id}/delete")
def delete(run_id: RunId, services: Context, visitor: Operating, form: Form) -> Response:
    """Delete a run that is over."""
    services.library.delete(run_id)
    return go_to("/runs")


def labels_in(form: dict[str, str], field: str = "labels") -> dict[str, str]:
    """Labels of a form's field. Raises Problem(bad_request)."""
    try:
        return parse_labels(form.get(field, ""))
    except ValueError as error:
        raise Problem(Code.BAD_REQUEST, "the form is not valid", [FieldFault("labels", str(error))]) from error


def _note_in(form: dict[str, str], field: str) -> str:
    # Browsers end a line with CR and LF.
    return form.get(field, "").replace("\r\n", "\n").strip()
