"""POST /runs/{run_id}/report: make a report from the journal as it is now."""

from fastapi import APIRouter
from pydantic import BaseModel

from cliffwatch.base.errors import Code
from cliffwatch.http.context import API_PREFIX, Context, Operator, RunId
from cliffwatch.http.problems import responses
from cliffwatch.http.route import ApiRoute
from cliffwatch.model.run_state import VerdictName

router = APIRouter(prefix=API_PREFIX, route_class=ApiRoute, tags=["journals"])


class ReportMade(BaseModel):
    """The verdict of the report. `is_provisional`: the run is not over, and its final report is made at its end."""

    verdict: VerdictName
    reasons: list[str]
    is_provisional: bool


@router.post("/runs/{run_id}/report", responses=responses(Code.NOT_FOUND))
def make_run_report(run_id: RunId, services: Context, caller: Operator) -> ReportMade:
    """Make the run's report again from its journal. A verdict that could not be found at the run's end is corrected."""
    made = services.reports.make(run_id)
    verdict = made.verdict
    return ReportMade(verdict=verdict.name, reasons=list(verdict.reasons), is_provisional=made.is_provisional)
