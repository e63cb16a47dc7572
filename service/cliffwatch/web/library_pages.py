"""Forms that annotate and delete a run."""

from typing import Any

from fastapi import APIRouter, Response
from pydantic import ValidationError

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.http.context import Context, RunId, find_run
from cliffwatch.model.annotations import AnnotationsChange, parse_labels
from cliffwatch.web.page import PageRoute, go_to
from cliffwatch.web.session import Form, Operating

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.post("/runs/{run_id}/annotations")
def annotate(run_id: RunId, services: Context, visitor: Operating, form: Form) -> Response:
    """Replace a run's labels and its note, and pin it or not."""
    labels = labels_in(form)
    gone = {name: None for name in find_run(services, run_id).labels if name not in labels}
    # Browsers end a line with two characters.
    note = form.get("note", "").replace("\r\n", "\n").strip()
    change: dict[str, Any] = {"labels": gone | labels, "note": note, "pinned": form.get("pinned") == "yes"}
    try:
        services.library.annotate(run_id, AnnotationsChange.model_validate(change), visitor.caller.name)
    except ValidationError as error:
        raise Problem(Code.BAD_REQUEST, "the form is not valid", faults_of(error)) from error
    return go_to(f"/runs/{run_id}")


@router.post("/runs/{run_id}/delete")
def delete(run_id: RunId, services: Context, visitor: Operating, form: Form) -> Response:
    """Delete a run that is over."""
    services.library.delete(run_id)
    return go_to("/runs")


def labels_in(form: dict[str, str]) -> dict[str, str]:
    """Labels of a form's field. Raises Problem(bad_request)."""
    try:
        return parse_labels(form.get("labels", ""))
    except ValueError as error:
        raise Problem(Code.BAD_REQUEST, "the form is not valid", [FieldFault("labels", str(error))]) from error
