"""POST /runs/{run_id}/report: make the report of what there is, now."""

from pathlib import Path

from fastapi import APIRouter
from pydantic import BaseModel

from cliffwatch.app.index import index_report
from cliffwatch.base import durable
from cliffwatch.base.errors import Code, Problem
from cliffwatch.http.context import API_PREFIX, Context, Operator, RunId, find_run
from cliffwatch.http.problems import responses
from cliffwatch.http.route import ApiRoute
from cliffwatch.journal import EventLog
from cliffwatch.journal.state import mend_verdict
from cliffwatch.model.state import RunState, VerdictName
from cliffwatch.report.picture_process import one_at_a_time
from cliffwatch.report.process import make_report
from cliffwatch.report.provisional import provisional_directory

router = APIRouter(prefix=API_PREFIX, route_class=ApiRoute, tags=["journals"])


class ReportMade(BaseModel):
    """What the report says. `is_provisional`: the run is not over, and its own report comes at its end."""

    verdict: VerdictName
    reasons: list[str]
    is_provisional: bool


@router.post("/runs/{run_id}/report", responses=responses(Code.NOT_FOUND))
def make_run_report(run_id: RunId, services: Context, caller: Operator) -> ReportMade:
    """Make the run's report anew of what its journal holds. A verdict that could not be found at its end is mended."""
    row = find_run(services, run_id)
    directory = Path(row.directory)
    is_over = row.state == RunState.FINISHED.value
    place = directory if is_over else provisional_directory(directory)
    # It takes a processor, and more memory than all else: not as often at once as people ask.
    with one_at_a_time(services.settings.state_directory / "cache" / "reports"):
        place.mkdir(mode=durable.PRIVATE_DIRECTORY, exist_ok=True)
        made = make_report(directory, place)
    if made.verdict is None or made.failure:
        code = Code.JOURNAL_UNWRITABLE if made.unwritable else Code.INTERNAL
        raise Problem(code, f"the report of run {run_id} could not be made: {made.failure}")
    if is_over:
        mend_verdict(EventLog(directory), made.verdict, made.reasons, services.clock.wall())
        with services.database.session() as session:
            index_report(session, directory)
    return ReportMade(verdict=made.verdict, reasons=list(made.reasons), is_provisional=not is_over)
