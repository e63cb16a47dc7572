"""Plan of a workload for one target: the gate's examination, the engine's plan, the brokers' preflight result."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from cliffwatch.app.capacity import memory_bytes
from cliffwatch.app.limit_notes import notes_on_limits, require_parts
from cliffwatch.base.clock import Clock
from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.questions import Questions, Unanswered
from cliffwatch.engines.contract import EngineContext, Probe
from cliffwatch.engines.registry import engine_of, load_of
from cliffwatch.gate import (
    Examination,
    Objection,
    confirmation_sentence,
    examine,
    free_bytes_of,
    notes_on_plan,
    objections_to_plan,
)
from cliffwatch.model.drives import PrometheusDrives
from cliffwatch.model.part_names import part_names
from cliffwatch.model.plan import LoadPlan
from cliffwatch.model.request import RunRequest
from cliffwatch.model.settings import Settings
from cliffwatch.model.target import AnyTarget, BrokerTarget, ObservedTarget, PostgresTarget
from cliffwatch.model.workload import Workload
from cliffwatch.telemetry.address import address_of
from cliffwatch.telemetry.drive_health import DriveSource
from cliffwatch.telemetry.drives import find_drives

_ASKING_LIMIT = 4
#: Notes on a run that watches no drive, by kind of target.
_NO_DRIVES = {
    "broker": "no drive is watched: name those of the brokers' hosts by --drives 'prometheus:SELECTOR', or, of brokers "
    "on this machine, their data directories by broker:HOST:PORT@/DIRECTORY",
    "postgres": "no drive is watched: name the server's by --drives 'prometheus:SELECTOR', or, of a server on this "
    "machine, its data directory by postgres://USER@HOST/DATABASE@/DIRECTORY",
    "observed": "no drive is watched: name those of the system's hosts by --drives 'prometheus:SELECTOR'",
}

#: Codes of objections of a preflight check, by kind of target: no answer, and an answer that refuses the load.
_PREFLIGHT = {
    "broker": ("brokers_unreachable", "load_refused"),
    "postgres": ("database_unreachable", "load_refused"),
    "observed": ("metrics_unreachable", "metrics_missing"),
}


@dataclass(frozen=True, slots=True)
class TargetPlan:
    """Plan for one target: what would be written, all objections, and the free space of a directory's volume."""

    examination: Examination
    plan: LoadPlan
    notes: tuple[str, ...]
    objections: tuple[Objection, ...]
    free_bytes: int | None


@dataclass(frozen=True, slots=True)
class DrivesElsewhere:
    """Drives of other hosts that a run would watch, by name; empty where it watches the drives below its targets."""

    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def confirmation_of(part: TargetPlan) -> str | None:
    """Sentence that the user must give to confirm a device's erasure; None where no confirmation is needed."""
    return confirmation_sentence(part.examination) or None


class TargetPlanner:
    """Plans workloads on targets, without writing."""

    def __init__(self, settings: Settings, clock: Clock, questions: Questions) -> None:
        self._runs_directory = settings.runs_directory
        self._state_directory = settings.state_directory
        self._settings = settings
        self._clock = clock
        self._questions = questions
        self._asking_brokers = threading.BoundedSemaphore(_ASKING_LIMIT)

    def plan(
        self, request: RunRequest, workload: Workload, run_id: str, patience_seconds: float
    ) -> tuple[DrivesElsewhere, list[TargetPlan]]:
        """The drives of other hosts that would be watched, and the plan for each target.

        Raises Problem when a target or Prometheus does not answer, or a target or a drive is missing.
        """
        elsewhere = self._drives_elsewhere(request.drives, workload)
        source = DriveSource.of(self._settings, request.drives)
        return elsewhere, [
            self._plan(target, workload, run_id, patience_seconds, elsewhere.names, source)
            for target in request.targets
        ]

    def _plan(
        self,
        target: AnyTarget,
        workload: Workload,
        run_id: str,
        patience_seconds: float,
        elsewhere: tuple[str, ...],
        source: DriveSource,
    ) -> TargetPlan:
        examination = self._examine(target, run_id)
        engine, load, context = engine_of(workload), load_of(workload), self._context(workload, examination)
        plan = engine.plan(load, context)
        with self._turn_to_ask(target, patience_seconds):
            probe = engine.probe(load, context)
        objections = (
            *examination.objections,
            *objections_to_plan(examination, plan, workload.free_space_reserve_ratio),
            *_preflight_objections(probe, target),
        )
        notes = [*examination.notes, *plan.notes, *probe.notes, *notes_on_plan(examination, plan, memory_bytes())]
        watched = elsewhere or [drive.name for drive in examination.drives]
        if not watched and target.kind in _NO_DRIVES:
            notes.append(_NO_DRIVES[target.kind])
        notes += notes_on_limits(workload, watched, source, self._clock.wall())
        return TargetPlan(examination, plan, tuple(notes), objections, free_bytes_of(examination))

    def check_drives(self, drives: PrometheusDrives | None, workload: Workload) -> None:
        """Check, without asking Prometheus, that a run could watch drives of other hosts. Raises Problem(bad_request)
        for an unknown Prometheus, and for a run in virtual time."""
        if drives is None:
            return
        if engine_of(workload).is_virtual(load_of(workload)):
            fault = FieldFault("drives", "a run in virtual time watches no drives; leave them out")
            raise Problem(Code.BAD_REQUEST, "drives count in real time", [fault])
        address_of(self._settings, drives.server)

    def _drives_elsewhere(self, drives: PrometheusDrives | None, workload: Workload) -> DrivesElsewhere:
        if drives is None:
            return DrivesElsewhere()
        found = find_drives(address_of(self._settings, drives.server), drives.selector, self._clock)
        troubles = (found.clock_trouble(workload.window), found.scrape_trouble(workload.window))
        return DrivesElsewhere(tuple(drive.name for drive in found.drives), tuple(filter(None, troubles)))

    def _examine(self, target: AnyTarget, run_id: str) -> Examination:
        try:
            return self._questions.ask(str(target), partial(examine, target, run_id, journals=self._runs_directory))
        except Unanswered as error:
            fault = FieldFault("target", f"{error}; the kernel's log says more")
            raise Problem(Code.TARGET_SILENT, f"{target} does not answer", [fault]) from error

    def _context(self, workload: Workload, examination: Examination) -> EngineContext:
        return EngineContext.planned(
            workload,
            examination.target,
            self._clock.wall(),
            run_id=examination.run_id,
            path=examination.path,
            is_device=examination.is_device,
            scratch=self._runs_directory / examination.run_id / "engine",
            state_directory=self._state_directory,
        )

    @contextmanager
    def _turn_to_ask(self, target: AnyTarget, patience_seconds: float) -> Iterator[None]:
        """Limit concurrent preflight checks: brokers that do not answer must not block all requests."""
        if not isinstance(target, BrokerTarget | PostgresTarget | ObservedTarget):
            yield
            return
        if not self._asking_brokers.acquire(timeout=patience_seconds):
            raise Problem(Code.NOT_READY, f"{_ASKING_LIMIT} loads check their targets at the moment; try again")
        try:
            yield
        finally:
            self._asking_brokers.release()


def _preflight_objections(probe: Probe, target: AnyTarget) -> list[Objection]:
    """Objections of a preflight check."""
    # Engines without brokers or metrics refuse a load only, such as options that fio does not have here.
    unreachable, refused = _PREFLIGHT.get(target.kind, _PREFLIGHT["broker"])
    return [
        *(Objection(unreachable, message) for message in probe.unreachable),
        *(Objection(refused, message) for message in probe.refused),
    ]


def names_of(request: RunRequest, workload: Workload, parts: Sequence[TargetPlan]) -> tuple[str, ...]:
    """Names of the parts of a run with several targets; none for a single one.

    Raises Problem(workload_invalid) where a limit names a part that the run has not.
    """
    drives = [[drive.name for drive in part.examination.drives] for part in parts]
    names = part_names(request.targets, drives, request.part_names) if request.more_targets else ()
    require_parts(workload, names)
    return names
