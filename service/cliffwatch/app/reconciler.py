"""Reconcile the index with journals and workers.

Once a second: index new events of journals, start queued runs whose target is free, start a new worker for interrupted
runs, and kill workers that exceed the grace period of a stop. All state is in the journals, so a service that was
killed continues after a restart, and workers are not affected.
"""

import logging
import os
import secrets
import subprocess
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from cliffwatch.analysis.run_evidence import LoadEnd
from cliffwatch.app import launcher
from cliffwatch.app.capacity import active_limit
from cliffwatch.app.hung_runs import hung_runs
from cliffwatch.app.index import index_run
from cliffwatch.app.lost_journals import GONE_SECONDS, finish_lost, is_gone, returned_runs
from cliffwatch.app.sightings import Sightings
from cliffwatch.base.clock import Clock
from cliffwatch.base.errors import Problem
from cliffwatch.base.logs import last_line_of
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.base.rounds import Rounds
from cliffwatch.base.units import format_duration
from cliffwatch.coordinator.restarts import GIVE_UP_SECONDS, GIVEN_UP, Losses, losses_of
from cliffwatch.gate import targets_overlap
from cliffwatch.journal import Event, EventLog, EventType, JournalReader, files
from cliffwatch.journal.conclusion import unanalysed
from cliffwatch.journal.following import StatusFollower
from cliffwatch.journal.state import RunStatus, change_state, status_of
from cliffwatch.model.order import RunOrder
from cliffwatch.model.run_state import ACTIVE, RunState
from cliffwatch.store.database import Database
from cliffwatch.store.models import RunRow
from cliffwatch.store.queries import unfinished_runs

_LOG = logging.getLogger(__name__)
_LOG_LINE_CHARACTERS = 300
PERIOD_SECONDS = 1.0
#: Maximum time from a worker's start until it holds the journal's lock.
START_GRACE_SECONDS = 15.0
#: Time for the report, in addition to the workload's own grace period.
FORCE_MARGIN_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class LiveRun:
    """A run to be processed, as the index has it."""

    run_id: str
    directory: Path
    target_key: str

    @classmethod
    def of(cls, row: RunRow) -> "LiveRun":
        return cls(row.id, Path(row.directory), row.target_key)


class Reconciler:
    """Background thread that reconciles the index with journals and workers."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        #: Workers that were killed, or were about to exit, when another worker replaced them.
        self._replaced: list[subprocess.Popen[bytes]] = []
        self._troubles: dict[str, str] = {}
        self._waiting: set[str] = set()
        #: Targets that workers use, by run id.
        self._held: dict[str, str] = {}
        self._followers: dict[str, StatusFollower] = {}
        self._seen = Sightings(clock)
        self._rounds = Rounds("reconciler", PERIOD_SECONDS, self.tick, "the reconciler's round failed")

    def start(self) -> None:
        self._rounds.start()

    def stop(self) -> None:
        """Stop the thread; returns when the tick in progress is over. Workers continue."""
        self._rounds.stop()

    def busy_seconds(self) -> float:
        """Duration of the tick in progress so far; 0 between ticks."""
        return self._rounds.busy_seconds()

    def tick(self) -> None:
        """Process every unfinished run once. A failure of one run does not affect the others."""
        with self._database.session() as session:
            returned = [LiveRun.of(row) for row in returned_runs(session)]
        for run in returned:
            self._guarded(run, lambda _: RunState.FINISHED)
        with self._database.session() as session:
            rows = unfinished_runs(session)
            runs = [LiveRun.of(row) for row in rows]
            self._held = {row.id: row.target_key for row in rows if row.state in ACTIVE}
        busy: list[str] = []
        queued: list[LiveRun] = []
        for run in runs:
            state = self._guarded(run, self._check_run)
            if state is RunState.QUEUED:
                queued.append(run)
            elif state is not RunState.FINISHED:
                busy.append(run.target_key)
        room = active_limit() - len(busy)
        for run in queued:
            if room > 0 and not any(targets_overlap(run.target_key, key) for key in busy):
                self._guarded(run, self._begin_on_free_target)
                room -= 1
            # A later run that needs a part of this run's target waits for this run.
            busy.append(run.target_key)
        self._reap({run.run_id for run in runs})

    def _guarded(self, run: LiveRun, act: Callable[[LiveRun], RunState]) -> RunState | None:
        """Process one run and return its state; a failure is logged, so that the others are still processed."""
        try:
            state = act(run)
            with self._database.session() as session:
                index_run(session, run.directory)
        except (Problem, OSError, ValueError, KeyError, TypeError, SQLAlchemyError) as error:
            self._log_failure(run, error)
            return None
        self._troubles.pop(run.run_id, None)
        return state

    def _log_failure(self, run: LiveRun, error: Exception) -> None:
        """Log a failure once, not each second while it lasts: the log may be on the disk that is full."""
        trouble = f"{type(error).__name__}: {error}"
        if self._troubles.get(run.run_id) != trouble:
            self._troubles[run.run_id] = trouble
            _LOG.error("run %s could not be checked", run.run_id, exc_info=error)

    def _check_run(self, run: LiveRun) -> RunState:
        status = self._status(run)
        if status is None:
            return self._end_unknown(run)
        if status.state is RunState.FINISHED or status.state is RunState.QUEUED:
            return status.state
        if status.state in ACTIVE and self._worker_lives(run, status):
            return self._limit_stop(run, status)
        # Without a readable state in the journal, which may be damaged since it was read, no worker can begin.
        if status_of(self._events(run)) is None:
            return self._end_unknown(run)
        launcher.kill_orphans(run.directory)
        if status.state in ACTIVE:
            windows = self._windows(run)
            reason = _why_it_died(run.directory, status.since)
            status = self._change(run, RunState.INTERRUPTED, reason=reason, windows=windows)
        return self._resume(run, status)

    def _begin_on_free_target(self, run: LiveRun) -> RunState:
        """Start a queued run, unless a hung process of a finished run uses its target; one note records the wait."""
        with self._database.session() as session:
            hung = hung_runs(session, run.target_key)
        if not hung:
            return self._begin(run)
        if run.run_id not in self._waiting:
            self._waiting.add(run.run_id)
            for run_id, processes in hung.items():
                detail = {"run": run_id, "what": " and ".join(process.waits_in() for process in processes)}
                EventLog(run.directory).append(Event(self._clock.wall(), EventType.NOTE, "target_hangs", detail))
        return RunState.QUEUED

    def _begin(self, run: LiveRun) -> RunState:
        self._change(run, RunState.STARTING)
        self._held[run.run_id] = run.target_key
        if (replaced := self._workers.pop(run.run_id, None)) is not None:
            self._replaced.append(replaced)
        self._workers[run.run_id] = launcher.launch(run.directory)
        return RunState.STARTING

    def _resume(self, run: LiveRun, status: RunStatus) -> RunState:
        """Start a new worker for an interrupted run after its pause, or give the run up when workers keep dying."""
        windows = self._windows(run)
        losses = losses_of(self._events(run), windows)
        if losses.is_exhausted(self._seen.seconds(run.run_id, "losses", (windows, losses.ended))):
            return self._give_up(run, losses)
        waited = self._seen.seconds(run.run_id, "pause", (windows, losses.ended, losses.count), losses.last_at)
        if losses.wait_seconds(waited, status.stop_requested) > 0 or self._is_taken(run):
            return status.state
        return self._begin(run)

    def _is_taken(self, run: LiveRun) -> bool:
        """Whether a worker of another run uses the target, which was free while this run's journal was gone."""
        others = (key for run_id, key in self._held.items() if run_id != run.run_id)
        return any(targets_overlap(run.target_key, key) for key in others)

    def _give_up(self, run: LiveRun, losses: Losses) -> RunState:
        """End the load of a run, and start one more worker that removes the files and makes the report.

        If the workers die after the end of the load too, the run finishes without a report; its reason names the
        command that makes one.
        """
        if not losses.ended:
            said = last_line_of(launcher.log_of(run.directory))[:_LOG_LINE_CHARACTERS] or "nothing"
            message = (
                f"no worker measured anything for {format_duration(GIVE_UP_SECONDS)}; {losses.count} were started, and "
                f"the last one said: {said}"
            )
            ended = {"how": LoadEnd.FAILED.value, "message": message, GIVEN_UP: True}
            EventLog(run.directory).append(Event(self._clock.wall(), EventType.ENGINE, "load_ended", ended))
            return self._begin(run)
        conclusion = unanalysed(run.directory, f"{losses.count} workers died; see worker.log")
        self._change(run, RunState.FINISHED, **conclusion.detail())
        return RunState.FINISHED

    def _worker_lives(self, run: LiveRun, status: RunStatus) -> bool:
        worker = self._workers.get(run.run_id)
        if worker is not None and worker.poll() is None and not _is_killed(worker.pid):
            return True
        if launcher.worker_is_alive(run.directory):
            return True
        # Another service instance may have started it a moment ago.
        return (
            status.state is RunState.STARTING and worker is None and self._has_been(run, status) < START_GRACE_SECONDS
        )

    def _limit_stop(self, run: LiveRun, status: RunStatus) -> RunState:
        if status.state is RunState.STOPPING:
            grace = RunOrder.model_validate(JournalReader(run.directory).document("order.json")).workload.stop_grace
            # From when this service saw it: by the wall clock, which may have been set, a stop would be killed early.
            stopping_seconds = self._seen.seconds(run.run_id, "stop", status.since)
            if stopping_seconds > grace + FORCE_MARGIN_SECONDS:
                launcher.kill_worker(run.directory, "the stop took longer than its grace period")
        return status.state

    def _has_been(self, run: LiveRun, status: RunStatus) -> float:
        """Seconds since the run entered its current state."""
        return self._seen.seconds(run.run_id, "state", (status.state, status.since), status.since)

    def _status(self, run: LiveRun) -> RunStatus | None:
        """Status of a run from its journal; None where no readable event gives its state."""
        follower = self._followers.setdefault(run.run_id, StatusFollower(run.directory))
        status = follower.status()
        for fault in follower.faults:
            _LOG.warning("run %s: %s; it is skipped", run.run_id, fault)
        return status

    def _end_unknown(self, run: LiveRun) -> RunState:
        """Handle a run without a readable state: it is running if its worker lives, else it is finished as unanalysed.

        Anything but a file in the place of events.jsonl is moved aside.
        """
        if is_gone(run.directory):
            return self._end_lost(run)
        if launcher.worker_is_alive(run.directory):
            return RunState.RUNNING
        launcher.kill_orphans(run.directory)
        events = run.directory / files.EVENTS
        if os.path.lexists(events) and not events.is_file():
            events.rename(events.with_name(f"{files.EVENTS}.moved-aside-{secrets.token_hex(4)}"))
        why = f"its worker is gone, and {files.EVENTS} has no state left that can be read"
        self._change(run, RunState.FINISHED, **unanalysed(run.directory, why).detail())
        return RunState.FINISHED

    def _end_lost(self, run: LiveRun) -> RunState:
        """Finish a run whose journal is gone, once no worker was alive for a while; until then it is running."""
        has_worker = launcher.has_worker(run.directory)
        if self._seen.seconds(run.run_id, "gone", has_worker) < GONE_SECONDS or has_worker:
            return RunState.RUNNING
        with self._database.session() as session:
            finish_lost(session, run.run_id, self._clock.wall())
        _LOG.error("run %s was finished as failed: its journal %s is gone", run.run_id, run.directory)
        return RunState.FINISHED

    @staticmethod
    def _events(run: LiveRun) -> Iterator[Event]:
        return (stored.event for stored in JournalReader(run.directory).events())

    def _change(self, run: LiveRun, to: RunState, **detail: object) -> RunStatus:
        return change_state(EventLog(run.directory), to, self._clock.wall(), detail)

    def _reap(self, live: Container[str]) -> None:
        """Forget finished runs; a worker process is forgotten once it has exited, after it recorded the run's end."""
        self._followers = {run_id: each for run_id, each in self._followers.items() if run_id in live}
        self._seen.keep_only(live)
        self._waiting = {run_id for run_id in self._waiting if run_id in live}
        over = [run_id for run_id in self._workers if run_id not in live]
        for run_id in over:
            if self._workers[run_id].poll() is not None:
                del self._workers[run_id]
        self._replaced = [worker for worker in self._replaced if worker.poll() is None]

    def _windows(self, run: LiveRun) -> int:
        """Number of windows in the journal; -1 where it cannot be read."""
        try:
            last = JournalReader(run.directory).last_window()
        except OSError:
            return -1
        return 0 if last is None else last.seq + 1


def _is_killed(pid: int) -> bool:
    process = ProcessIdentity.of(pid)
    return process is not None and process.is_killed()


def _why_it_died(directory: Path, since: float) -> str:
    """Message that a worker died, with the last line of its log if that was written to since `since`."""
    log = launcher.log_of(directory)
    try:
        is_new = log.stat().st_mtime >= since
    except OSError:
        is_new = False
    line = last_line_of(log)[:_LOG_LINE_CHARACTERS] if is_new else ""
    return f"the worker died; its log ends with: {line}" if line else "the worker died"
