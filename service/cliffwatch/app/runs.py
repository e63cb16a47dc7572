"""Run service: plan, submit and stop runs.

A run exists once its journal does. The journal is made under another name and renamed when it is complete, so that a
refusal, or a crash at any moment, leaves either the whole run or nothing.
"""

import logging
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, takewhile
from pathlib import Path
from typing import Any, Literal

from cliffwatch.analysis.verdict import stopped_after
from cliffwatch.app import launcher
from cliffwatch.app.admission import RunTurns, admit
from cliffwatch.app.capacity import active_limit
from cliffwatch.app.hung_runs import hung_runs
from cliffwatch.app.index import UNFINISHED_PREFIX, index_run, status_in, write_status
from cliffwatch.app.target_plans import TargetPlan, TargetPlanner, names_of
from cliffwatch.base import durable
from cliffwatch.base.clock import Clock
from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.questions import Questions
from cliffwatch.engines.registry import check_target_kind, checked_workload, load_of
from cliffwatch.gate import (
    Examination,
    Objection,
    combined_key,
    directory_of,
    is_same_device,
    place_of,
    require_clear,
    targets_overlap,
)
from cliffwatch.journal import EventLog, files
from cliffwatch.journal.annotated import annotated
from cliffwatch.journal.conclusion import Conclusion
from cliffwatch.journal.state import change_state
from cliffwatch.model.annotations import Annotations
from cliffwatch.model.order import RunOrder
from cliffwatch.model.request import AskedTarget, RunRequest, Submission, parse_reference
from cliffwatch.model.run_state import ACTIVE, RunState, Verdict, VerdictName
from cliffwatch.model.settings import Settings
from cliffwatch.model.workload import Workload, format_workload, workload_from
from cliffwatch.store.database import DATABASE_ERRORS, Database
from cliffwatch.store.models import RunRow
from cliffwatch.store.queries import require_run, unfinished_runs
from cliffwatch.store.workloads import require_workload

_LOG = logging.getLogger(__name__)
#: How long a stop request, once in the journal, waits for the database; after that the response is sent without it.
_INDEX_PATIENCE_SECONDS = 0.5
#: Name prefix of journals that are being created; unfinished ones are removed when the service starts.
_PENDING_PREFIX = f"{UNFINISHED_PREFIX}new-"
#: A generated run id is the workload's name, cut to this length, and 21 characters more; 63 are allowed.
_NAME_IN_ID = 42
#: Objections caused by the worker of another run on the same target: this run waits until that run ends.
_CAUSED_BY_RUN = frozenset({"in_use"})
#: Maximum number of queued runs: the reconciler checks each of them every second.
QUEUED_LIMIT = 200
_SCHEDULE_PATIENCE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Plan of a request: what it would do to each of its targets, and all objections."""

    run_id: str
    workload: Workload
    submission: Submission
    parts: tuple[TargetPlan, ...]
    notes: tuple[str, ...]
    objections: tuple[Objection, ...]
    drives: tuple[str, ...] = ()
    part_names: tuple[str, ...] = ()
    waits_for: str | None = None


class RunService:
    """Plan, submit and stop runs. `request_stop` stops a run's worker: gracefully, or by force (True)."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        clock: Clock,
        request_stop: Callable[[Path, bool], None] = launcher.request_stop,
        questions: Questions | None = None,
        turns: RunTurns | None = None,
    ) -> None:
        self._turns = turns or RunTurns()
        self._runs_directory = settings.runs_directory
        self._database = database
        self._clock = clock
        self._request_stop = request_stop
        self._planner = TargetPlanner(settings, clock, questions or Questions(clock))

    def sweep(self) -> None:
        """Create the runs' directory, and remove unfinished journals of a service that was killed."""
        self._runs_directory.mkdir(mode=durable.PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        for path in self._runs_directory.glob(f"{_PENDING_PREFIX}*"):
            shutil.rmtree(path)

    def plan(self, request: RunRequest, run_id: str | None = None, patience_seconds: float = 0.0) -> RunPlan:
        """Plan a run without writing anything. Raises Problem when the request is wrong; objections are in the plan."""
        workload, version, replaced = self.resolve(request)
        run_id = run_id or self._new_id(workload)
        elsewhere, parts = self._planner.plan(request, workload, run_id, patience_seconds)
        objections = [*_named(parts, "objections"), *_shared(parts)]
        notes = [*_named(parts, "notes"), *elsewhere.notes]
        key = combined_key([part.examination.target_key for part in parts])
        if (holder := self._run_on(key)) is not None:
            objections = [objection for objection in objections if objection.code not in _CAUSED_BY_RUN]
            notes.append(f"run {holder} is on this target or its drive; this run would wait until it ends")
        return RunPlan(
            run_id=run_id,
            workload=workload,
            submission=_submission(parts, key, request.digest, version, replaced),
            parts=tuple(parts),
            part_names=names_of(request, workload, parts),
            notes=tuple(notes),
            objections=tuple(objections),
            drives=elsewhere.names,
            waits_for=holder,
        )

    def submit(
        self,
        request: RunRequest,
        created_by: str,
        run_id: str | None = None,
        schedule_id: str | None = None,
        confirmed_blocks: str | None = None,
    ) -> tuple[str, bool]:
        """Queue a run; returns its id, and whether it is new. Raises Problem, and then nothing is left behind.

        `confirmed_blocks`: what the drive consisted of (`Examination.blocks`) when its erasure was confirmed earlier.

        With a `run_id` of the caller's choice, the same request may be repeated and makes one run; another request with
        that id is a conflict.
        """
        if run_id is not None and self._exists_for(run_id, request):
            return run_id, False
        self._require_place()
        # Schedules that are due at once wait for one another: no client waits for their answers.
        plan = self.plan(request, run_id, _SCHEDULE_PATIENCE_SECONDS if schedule_id is not None else 0.0)
        require_clear([*plan.objections, *_changes(plan.parts[0].examination, confirmed_blocks)])
        order = RunOrder(
            run_id=plan.run_id,
            workload=plan.workload,
            target=request.target,
            created_at=self._clock.wall(),
            created_by=created_by,
            schedule_id=schedule_id,
            more_targets=request.more_targets,
            drives=request.drives,
            part_names=plan.part_names,
        )
        return plan.run_id, self._begin(order, plan.submission, request)

    def stop(self, run_id: str, force: bool) -> RunRow:
        """Stop a run, at once while it is queued, else through its worker; returns its updated row.

        The request is written to the journal first, and to the database when that is possible: a run can be stopped
        while the database is locked. Raises Problem(wrong_state) when the run can no longer be stopped.
        """
        with self._database.snapshot() as session:
            row = require_run(session, run_id)
        directory = Path(row.directory)
        if status_in(directory).state is RunState.FINISHED:
            raise Problem(Code.WRONG_STATE, f"run {run_id} is already finished")
        if status_in(directory).state is not RunState.QUEUED or not self._finish_queued(directory):
            self._request_stop(directory, force)
        try:
            with self._database.session(_INDEX_PATIENCE_SECONDS) as session:
                return index_run(session, directory)
        except DATABASE_ERRORS as error:
            _LOG.warning("run %s: stop requested; the database is updated later: %s", run_id, error)
            write_status(row, status_in(directory))
            return row

    def resolve(self, request: RunRequest) -> tuple[Workload, int | None, dict[str, str]]:
        """The workload to run, its version, and the version's own values of the durations that the request overrides.

        Raises Problem: not_found, workload_invalid when the workload, its load or the target's kind is wrong, or
        bad_request when drives of other hosts cannot be watched.
        """
        if isinstance(request.workload, str):
            name, version = parse_reference(request.workload)
            with self._database.snapshot() as session:
                row = require_workload(session, name, version)
            original, version = workload_from(row.document), row.version
        else:
            original, version = checked_workload(request.workload), None
        workload = original.with_durations(request.durations)
        load_of(workload)
        for target in request.targets:
            check_target_kind(workload, target.kind)
        self._planner.check_drives(request.drives, workload)
        return workload, version, _replaced(original, workload) if version is not None else {}

    def waits_for(self, row: RunRow) -> list[str]:
        """Ids of the runs that a queued run waits for.

        These are earlier unfinished runs on its target; else finished runs whose hung process uses the target; else all
        runs that have started, if the machine's limit of concurrent runs is reached.
        """
        if row.state != RunState.QUEUED.value:
            return []
        with self._database.snapshot() as session:
            unfinished, hung = list(unfinished_runs(session)), list(hung_runs(session, row.target_key))
        before = takewhile(lambda other: other.id != row.id, unfinished)
        same_target = [other.id for other in before if targets_overlap(other.target_key, row.target_key)]
        under_way = [other.id for other in unfinished if other.state != RunState.QUEUED.value]
        return same_target or hung or (under_way if len(under_way) >= active_limit() else [])

    def _require_place(self) -> None:
        with self._database.snapshot() as session:
            waiting = sum(row.state == RunState.QUEUED.value for row in unfinished_runs(session))
        if waiting >= QUEUED_LIMIT:
            detail = f"{waiting} runs wait for their targets already; stop some of them, or wait until they have begun"
            raise Problem(Code.CONFLICT, detail)

    def _run_on(self, target_key: str) -> str | None:
        """Id of a run that a worker executes on the same target."""
        with self._database.snapshot() as session:
            for row in unfinished_runs(session):
                if row.state in ACTIVE and targets_overlap(row.target_key, target_key):
                    return row.id
        return None

    def _new_id(self, workload: Workload) -> str:
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(self._clock.wall()))
        return f"{workload.name[:_NAME_IN_ID]}-{stamp}-{secrets.token_hex(2)}"

    def _exists_for(self, run_id: str, request: RunRequest) -> bool:
        """Whether the run exists already, from the same request. Raises Problem(conflict) if it is from another one."""
        with self._database.snapshot() as session:
            row = session.get(RunRow, run_id)
        directory = self._runs_directory / run_id
        if row is None and not directory.exists():
            return False
        if row is None or not Path(row.directory).is_dir():
            with self._turns.of(run_id):
                row = self._placed(run_id)
        if row is None:
            return False
        # The process that made the journal may have been killed, or its sync may have failed, before the name was
        # durable.
        durable.sync_directory(Path(row.directory).parent)
        if row.request_digest != request.digest:
            fault = FieldFault("run_id", "use another id, or repeat the request that created this run")
            raise Problem(
                Code.CONFLICT, f"there is a run {run_id} already, and something else was asked of it", [fault]
            )
        return True

    def _placed(self, run_id: str) -> RunRow | None:
        """Index the run's journal, if there is one, and return its row; else delete the row of a run that never began.

        The caller holds the lock of the run id. Raises Problem(journal_unreadable) if the run began and its journal is
        gone.
        """
        directory = self._runs_directory / run_id
        with self._database.session() as session:
            if directory.exists():
                return index_run(session, directory)
            row = session.get(RunRow, run_id)
            # A run whose journal is gone has no phase if no worker began with it (app/lost_journals.py).
            if row is not None and row.state != RunState.QUEUED.value and row.phase is not None:
                words = (
                    f"the journal of run {run_id} is not at {row.directory} any more; use another id for another run"
                )
                raise Problem(Code.JOURNAL_UNREADABLE, words)
            if row is not None:
                session.delete(row)
        return None

    def _begin(self, order: RunOrder, submission: Submission, request: RunRequest) -> bool:
        """Make the journal and index it; False if another caller created the same run in the meantime."""
        pending = self._runs_directory / f"{_PENDING_PREFIX}{order.run_id}-{secrets.token_hex(4)}"
        directory, is_placed = self._runs_directory / order.run_id, False
        try:
            self._write_journal(pending, order, submission, request.labels)
            with self._turns.of(order.run_id):
                # Fails when the name is taken: a journal is never empty.
                pending.rename(directory)
                is_placed = True
                admit(self._database, directory)
        except OSError as error:
            shutil.rmtree(pending, ignore_errors=True)
            if is_placed:
                raise
            if directory.exists():
                return not self._exists_for(order.run_id, request)
            if not self._runs_directory.is_dir():
                words = f"{self._runs_directory}, where journals are, is not there: mount its disk, and try again"
                raise Problem(Code.JOURNAL_UNWRITABLE, words) from error
            raise
        except Problem:
            shutil.rmtree(pending, ignore_errors=True)
            raise
        return True

    @staticmethod
    def _write_journal(directory: Path, order: RunOrder, submission: Submission, labels: dict[str, str]) -> None:
        directory.mkdir(mode=durable.PRIVATE_DIRECTORY)
        durable.write_json_durably(directory / files.ORDER, order.to_document())
        durable.write_durably(directory / files.WORKLOAD, format_workload(order.workload))
        log = EventLog(directory)
        change_state(log, RunState.QUEUED, order.created_at, submission.to_detail())
        if labels:
            log.append(annotated(Annotations(labels=labels), order.created_by, order.created_at))

    def _finish_queued(self, directory: Path) -> bool:
        """Finish a queued run; False when it was started in the meantime."""
        conclusion = Conclusion(Verdict(VerdictName.STOPPED, (stopped_after(0.0),)))
        try:
            change_state(EventLog(directory), RunState.FINISHED, self._clock.wall(), conclusion.detail())
        except Problem as problem:
            if problem.code is Code.WRONG_STATE:
                return False
            raise
        return True


def _named(parts: Sequence[TargetPlan], what: Literal["notes", "objections"]) -> list[Any]:
    """Messages of all targets, each prefixed with its targets unless there is one target or it applies to all."""
    if len(parts) == 1:
        return list(getattr(parts[0], what))
    found: dict[Any, list[str]] = {}
    for part in parts:
        for each in getattr(part, what):
            found.setdefault(each, []).append(str(part.examination.target))
    return [
        each if len(targets) == len(parts) else _said_of(", ".join(targets), each) for each, targets in found.items()
    ]


def _said_of(target: str, said: Any) -> Any:
    if isinstance(said, Objection):
        return replace(said, message=f"{target}: {said.message}")
    return f"{target}: {said}"


def _shared(parts: Sequence[TargetPlan]) -> list[Objection]:
    """Objections to targets of one run that are on one drive: they would disturb each other's latencies."""
    found = []
    for one, other in combinations((part.examination for part in parts), 2):
        if targets_overlap(one.target_key, other.target_key):
            message = f"{one.target} and {other.target} are on one drive; name targets on drives of their own"
            found.append(Objection("targets_share_a_drive", message))
    return found


def _submission(
    parts: Sequence[TargetPlan], key: str, digest: str, version: int | None, replaced: dict[str, str]
) -> Submission:
    first, *more = (
        AskedTarget(place_of(part.examination), directory_of(part.examination), part.examination.blocks)
        for part in parts
    )
    return Submission(
        key,
        digest,
        version,
        replaced,
        target_path=first.path,
        target_directory=first.directory,
        target_blocks=first.blocks,
        more_targets=tuple(more),
    )


def _changes(examination: Examination, confirmed_blocks: str | None) -> list[Objection]:
    """Objection if the examined drive is not the one whose erasure was confirmed; else empty."""
    present = examination.blocks or ""
    if confirmed_blocks is None or is_same_device(confirmed_blocks, present):
        return []
    message = (
        f"{str(examination.target).partition(':')[2]} was another drive when its erasure was confirmed "
        f"({confirmed_blocks}; now {present}); look at what is on it, and confirm it again if that may be lost"
    )
    return [Objection("target_changed", message)]


def _replaced(original: Workload, workload: Workload) -> dict[str, str]:
    """The original values of the durations that `workload` overrides, by their names in DurationOverrides."""
    before, after = durations_of(original), durations_of(workload)
    return {name: text for name, text in before.items() if after[name] != text}


def durations_of(workload: Workload) -> dict[str, Any]:
    """Durations of a workload's window and phases, as text by their names in DurationOverrides."""
    document = workload.model_dump(mode="json")
    return {"window": document["window"], **document["phases"]}
