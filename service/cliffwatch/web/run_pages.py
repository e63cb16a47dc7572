"""Runs: the list, one run live, its series, and its report."""

import re
from collections import deque
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from sse_starlette import EventSourceResponse

from cliffwatch.analysis.journal_series import BASELINE_NOTE
from cliffwatch.analysis.marks import mark_of
from cliffwatch.app.marks import mark_run
from cliffwatch.app.repeat import stored_workload
from cliffwatch.app.standing import standing_of
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.http.context import Context, RunId, find_run
from cliffwatch.http.journal_resource import report_page, report_picture
from cliffwatch.http.live_stream import live_stream
from cliffwatch.http.mark_request import MarkRequest
from cliffwatch.http.paging import PageToken
from cliffwatch.http.run_resource import Run, RunSummary, run_resource
from cliffwatch.http.run_rows import RunFilter, listed_rows
from cliffwatch.journal import Event, EventType, JournalReader, StoredEvent
from cliffwatch.journal.event_text import EXPLAINING_TYPES, ROUTINE_EVENTS, event_text
from cliffwatch.model.annotations import LABEL_CHOICE_PATTERN, NOTE_LIMIT, LabelChoice, parse_choice
from cliffwatch.model.document import Name
from cliffwatch.model.drill import variant_of
from cliffwatch.model.phase import Phase
from cliffwatch.model.run_state import COOLING, MEANINGS, RunState, VerdictName
from cliffwatch.model.shown_drives import shown_drives
from cliffwatch.report.phases import phase_bounds
from cliffwatch.report.remedies import remedy_of
from cliffwatch.store.models import RunRow
from cliffwatch.web.curves import columns_of
from cliffwatch.web.firing import FollowedAlerts
from cliffwatch.web.page import EMPTY_IS_NONE, HEADERS, PageRoute, go_to, show
from cliffwatch.web.run_list import run_list
from cliffwatch.web.runbooks import PLACEHOLDERS, runbooks
from cliffwatch.web.session import AnyVisitor, Form, Operating

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_PAGE_SIZE = 25
#: Maximum number of events that a live page lists, besides states, phases, findings and baselines, which are few; the
#: report and the API have all of them.
_EVENTS_SHOWN = 200
_KEPT_TYPES = frozenset({EventType.STATE, EventType.PHASE, EventType.FINDING})
#: Types of events that a live page lists, but for `ROUTINE_EVENTS`; events.jsonl has the others.
_SHOWN_TYPES = EXPLAINING_TYPES | {"state", "phase"}
_STOPPABLE = frozenset({RunState.QUEUED, RunState.STARTING, RunState.RUNNING, RunState.INTERRUPTED})


@router.get("/")
def show_start(visitor: AnyVisitor) -> Response:
    return go_to("/runs")


@router.get("/runs")
def show_runs(
    request: Request,
    services: Context,
    visitor: AnyVisitor,
    state: Annotated[RunState | None, EMPTY_IS_NONE] = None,
    workload: Annotated[Name | None, EMPTY_IS_NONE] = None,
    verdict: Annotated[VerdictName | None, EMPTY_IS_NONE] = None,
    label: Annotated[LabelChoice | None, EMPTY_IS_NONE] = None,
    page: PageToken = None,
) -> Response:
    """Runs, newest first, each with its verdict, its figures and the curve of its p99."""
    followed = request.app.state.followed_alerts
    assert isinstance(followed, FollowedAlerts), "the application makes one"
    only = RunFilter(state, workload, verdict, dict([parse_choice(label)]) if label else {})
    rows = listed_rows(services, only, _PAGE_SIZE, page)
    chosen: dict[str, Any] = {"verdict": verdict, "state": state, "workload": workload, "label": label}
    filters = {name: str(value) for name, value in chosen.items() if value is not None}
    return show(
        request,
        "runs.html",
        visitor,
        list=run_list(services, rows.items, followed),
        older=urlencode(filters | {"page": rows.next_page}) if rows.next_page else "",
        filtered=bool(filters),
        states=list(RunState),
        verdicts=list(VerdictName),
        meanings=MEANINGS,
        label_pattern=LABEL_CHOICE_PATTERN.strip("^$").replace("-]", "\\-]"),
        **chosen,
    )


@router.get("/runs/{run_id}")
def show_run(request: Request, run_id: RunId, services: Context, visitor: AnyVisitor) -> Response:
    """Page of one run, which follows the run while it goes on."""
    return run_page(request, find_run(services, run_id), services, visitor)


@dataclass(frozen=True, slots=True)
class RefusedForm:
    """Fields of a form for labels and note that was refused, and why."""

    fields: dict[str, str]
    problem: Problem


def run_page(
    request: Request, row: RunRow, services: Context, visitor: AnyVisitor, refused: RefusedForm | None = None
) -> Response:
    """Page of one run; with a `refused` form for its labels and note, that form is open and shows what was typed."""
    run = run_resource(row, services.clock.wall(), services.runs.waits_for(row))
    reader = JournalReader(Path(row.directory))
    return show(
        request,
        "run.html",
        visitor,
        HTTPStatus.OK if refused is None else refused.problem.kind.status,
        run=run,
        annotations=_annotations(run) | ({} if refused is None else {"pinned": "no"} | refused.fields),
        refused=None if refused is None else refused.problem,
        meaning=_meaning(run),
        remedy=remedy_of(run.verdict, run.reasons, run.id),
        meant=_meant(run),
        standing=standing_of(services.database, row),
        meanings={str(state): words for state, words in MEANINGS.items()} | {Phase.COOL_DOWN.value: COOLING},
        again=_fits_the_form(run, row, services),
        drill=variant_of(run.labels),
        deletable=run.state is RunState.FINISHED and visitor.may_operate,
        note_limit=NOTE_LIMIT,
        shown={"types": sorted(_SHOWN_TYPES), "routine": sorted(ROUTINE_EVENTS)},
        runbooks={"names": list(runbooks()), "labels": list(PLACEHOLDERS)},
        stoppable=run.state in _STOPPABLE and visitor.may_operate,
        markable=run.imported_at is None and visitor.may_operate,
        window=reader.document("order.json")["workload"]["window"],
        drives=_drives_in(reader),
    )


def _fits_the_form(run: RunSummary, row: RunRow, services: Context) -> bool:
    """Whether the form can start the run again: one target, which is still there, and a stored workload."""
    if run.more_targets or variant_of(run.labels) is not None:
        return False
    return stored_workload(row, services.workloads) is not None


def _drives_in(reader: JournalReader) -> str:
    """The run's drives as text; empty while they are not recorded, and where they are damaged."""
    try:
        return shown_drives(reader.facts())
    except Problem:
        return ""


def _annotations(run: RunSummary) -> dict[str, str]:
    """Fields of the form for labels and note. Those that end in `_before` are what was shown, so that what others
    change meanwhile stays."""
    labels = "".join(f"{name}={value}\n" for name, value in sorted(run.labels.items()))
    shown = {"labels": labels, "note": run.note, "pinned": "yes" if run.pinned else "no"}
    return shown | {f"{name}_before": value for name, value in shown.items()}


@router.get("/runs/{run_id}/series")
def show_series(run_id: RunId, services: Context, visitor: AnyVisitor) -> Response:
    """Series and events of a run so far, for a live page, and the position from which its stream continues."""
    row = find_run(services, run_id)
    origin = row.load_start if row.load_start is not None else row.created_at
    directory = Path(row.directory)
    shown = _events(directory, origin)
    series = columns_of(directory, origin)
    body = series | {
        "origin": origin,
        "has_begun": row.load_start is not None,
        "planned_seconds": row.planned_seconds,
        "events": shown.events,
        "phases": shown.phases,
        "position": f"{shown.last}.{series['last_window']}",
        "run": _facts_of(run_resource(row, services.clock.wall())),
    }
    return JSONResponse(body, headers=HEADERS)


@router.get("/runs/{run_id}/live")
async def follow(
    run_id: RunId,
    services: Context,
    visitor: AnyVisitor,
    request: Request,
    after: Annotated[str, Query(pattern=r"^\d{1,12}\.-?\d{1,12}$")] = "0.-1",
) -> EventSourceResponse:
    """Live stream of a run, the same as the API's, from `after` on, or from a reconnecting browser's Last-Event-ID."""
    return await live_stream(services, visitor.caller, run_id, request.headers.get("last-event-id") or after)


@router.get("/runs/{run_id}/report")
def show_report(run_id: RunId, services: Context, visitor: AnyVisitor) -> Response:
    return report_page(services, run_id)


@router.get("/runs/{run_id}/report.png")
def show_picture(run_id: RunId, services: Context, visitor: AnyVisitor) -> Response:
    return report_picture(services, run_id)


@router.post("/runs/{run_id}/report")
def make_report(run_id: RunId, services: Context, visitor: Operating) -> Response:
    """Make the run's report anew, with what was marked since."""
    services.reports.make(run_id)
    return go_to(f"/runs/{run_id}")


@router.post("/runs/{run_id}/stop")
def stop(run_id: RunId, services: Context, visitor: Operating, form: Form) -> Response:
    """Stop a run; `force` kills it."""
    services.runs.stop(run_id, force=form.get("force") == "yes")
    return go_to(f"/runs/{run_id}")


_WITHOUT_ZONE = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+")


@router.post("/runs/{run_id}/marks")
def mark(run_id: RunId, services: Context, visitor: Operating, form: Form) -> Response:
    """Mark a span in which the run was disturbed on purpose. Times without a zone are UTC."""
    texts = {name: form.get(name, "").strip() for name in ("text", "reason", "start", "end")}
    texts |= {name: f"{texts[name]}Z" for name in ("start", "end") if _WITHOUT_ZONE.fullmatch(texts[name])}
    try:
        request = MarkRequest.model_validate(texts)
    except ValidationError as error:
        raise Problem(Code.BAD_REQUEST, "the form is not valid", faults_of(error)) from error
    mark_run(find_run(services, run_id), request.mark, visitor.caller.name, services.clock.wall())
    return go_to(f"/runs/{run_id}")


def _meant(run: Run) -> str:
    """Name of what the page explains: the run's state, or the cool-down, in which a running run makes no load."""
    is_cooling = run.state is RunState.RUNNING and run.phase == Phase.COOL_DOWN
    return Phase.COOL_DOWN.value if is_cooling else run.state.value


def _meaning(run: Run) -> str:
    """Text on what the run's state means, with the runs it waits for, or the reason of an interruption."""
    if _meant(run) == Phase.COOL_DOWN:
        return COOLING
    meaning = MEANINGS[run.state]
    if run.waits_for:
        return f"{meaning}, after {', '.join(run.waits_for)}"
    if run.state is not RunState.INTERRUPTED:
        return meaning
    events = (stored.event for stored in JournalReader(Path(run.directory)).events())
    reasons = [event.detail.get("reason") for event in events if event.type is EventType.STATE]
    return f"{meaning} ({reasons[-1]})" if reasons and reasons[-1] else meaning


_FACTS = {"state", "phase", "verdict", "reasons", "progress_ratio", "elapsed_seconds", "windows", "figures"}


def _facts_of(run: Run | RunSummary) -> dict[str, Any]:
    return run.model_dump(mode="json", include=_FACTS)


@dataclass(frozen=True, slots=True)
class _Shown:
    """Events to show on a live page, number of the last event, and each phase's name, start and end."""

    events: list[dict[str, Any]]
    last: int
    phases: list[tuple[str, float, float]]


def _events(directory: Path, origin: float) -> _Shown:
    kept: list[StoredEvent] = []
    others: deque[StoredEvent] = deque(maxlen=_EVENTS_SHOWN)
    entered: list[Event] = []
    last = 0
    for stored in JournalReader(directory).events():
        last = stored.id
        if stored.event.type is EventType.PHASE:
            entered.append(stored.event)
        is_drawn = stored.event.name == BASELINE_NOTE or mark_of(stored.event) is not None
        if stored.event.type in _KEPT_TYPES or is_drawn:
            kept.append(stored)
        elif stored.event.type in _SHOWN_TYPES and stored.event.name not in ROUTINE_EVENTS:
            others.append(stored)
    events = [_shown(stored.event, origin) for stored in sorted([*kept, *others], key=lambda each: each.id)]
    phases = [(name, start - origin, end - origin) for name, (start, end) in phase_bounds(entered).items()]
    phases.sort(key=lambda phase: phase[1])
    return _Shown(events, last, phases)


def _shown(event: Event, origin: float) -> dict[str, Any]:
    return {
        "elapsed": round(event.happened_at - origin, 3),
        "type": event.type.value,
        "name": event.name,
        "detail": event.detail,
        "text": event_text(event.type.value, event.name, event.detail),
    }
