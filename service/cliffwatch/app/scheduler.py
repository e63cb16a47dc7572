"""Scheduler: queue runs when schedules are due. APScheduler is only the timer; the schedules table has the due times.

A fire time is first recorded in schedule_firings, then the run is queued and the row is updated. A service that is
killed in between leaves a failed firing, never an unrecorded one. Fire times that pass while no service runs are
recorded as missed and not run late. So are fire times that pass while the schedule's previous run still waits for its
target: otherwise a schedule that is too fast would fill the queue.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from apscheduler.events import EVENT_JOB_MISSED, JobExecutionEvent
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from cliffwatch.app.scheduler_lock import SchedulerLock
from cliffwatch.app.stored_schedules import read_schedule, reason_of
from cliffwatch.base.clock import Clock, RunClock
from cliffwatch.base.errors import Problem
from cliffwatch.base.rounds import Rounds
from cliffwatch.model.request import RunRequest
from cliffwatch.model.run_state import RunState
from cliffwatch.model.target import DeviceTarget
from cliffwatch.model.trigger import fire_times, fire_times_until
from cliffwatch.store.database import DATABASE_ERRORS, Database, take_turns
from cliffwatch.store.models import FiringRow, RunRow, ScheduleRow

_LOG = logging.getLogger(__name__)
QUEUED, MISSED, FAILED = "queued", "missed", "failed"
#: Missed fire times that are recorded one by one; the last such row has the number of further ones.
MISSED_LISTED = 100
#: Maximum number of missed fire times that are counted.
_MISSED_COUNTED = 10_000
#: Number of firings without a run that are kept of a schedule; firings that queued a run are all kept.
FRUITLESS_KEPT = 1000
#: Attempts of a database step, and the pause between them: minutes in all, with the database's own timeout. A backup
#: blocks SQLite for one or two minutes; fire times that are overdue by then are recorded as missed.
_ATTEMPTS, _PAUSE_SECONDS = 60, 0.5
#: Interval at which the wall clock is compared with the monotonic clock.
_LOOK_SECONDS = 15.0
_T = TypeVar("_T")
#: Exceptions from reading a damaged row.
_UNREADABLE = (Problem, ValueError, TypeError, OverflowError)
#: Detail of a firing whose schedule was stored by a version that did not examine the drive at its confirmation.
HELD_TO_NAME = (
    "the drive was held to its name only: what it was made of when its erasure was confirmed was not stored; give the "
    "schedule its target again"
)
#: (request, requester, schedule id, composition of the drive when its erasure was confirmed) → run id.
Submit = Callable[[RunRequest, str, str, str | None], str]


@dataclass(frozen=True, slots=True)
class _Due:
    """Recorded fire time whose run is to be queued."""

    firing_id: int
    request: RunRequest
    schedule_name: str
    target_blocks: str | None


class Scheduler:
    """Timer of the service's schedules.

    Only one scheduler is active: `start` takes a lock, and every firing checks that it is still held.
    """

    def __init__(
        self, database: Database, clock: Clock, lock: SchedulerLock, misfire_grace_seconds: float, submit: Submit
    ) -> None:
        self._database = database
        self._clock = clock
        self._lock = lock
        self._grace_seconds = misfire_grace_seconds
        self._submit = submit
        self._turn = threading.Lock()
        self._stopping = threading.Event()
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": misfire_grace_seconds},
        )
        self._scheduler.add_listener(self._on_missed, EVENT_JOB_MISSED)
        self._run_clock, self._is_set = RunClock(clock), threading.Event()
        self._rounds = Rounds("schedules", _LOOK_SECONDS, self.look_at_clock, "schedules could not be planned anew")

    @property
    def is_running(self) -> bool:
        return bool(self._scheduler.running) and self._lock.is_held()

    def start(self) -> None:
        """Record missed fire times and start. Raises Problem(conflict) when another scheduler has the lock."""
        self._lock.acquire()
        now = self._clock.wall()
        with self._database.snapshot() as session:
            identifiers = list(session.scalars(select(ScheduleRow.id).where(ScheduleRow.enabled)))
        for schedule_id in identifiers:
            self._pass_over(schedule_id, now)
        self._scheduler.start()
        for schedule_id in identifiers:
            self.refresh(schedule_id)
        self._rounds.start()

    def look_at_clock(self) -> None:
        """Plan all schedules anew if the wall clock was set since the last call.

        Set ahead by mistake, it passes over fire times, and the next one is later than many that are to come.
        """
        self._compare_clocks()
        if not self._is_set.is_set():
            return
        self._is_set.clear()
        now = self._clock.wall()
        with self._database.snapshot() as session:
            identifiers = list(session.scalars(select(ScheduleRow.id).where(ScheduleRow.enabled)))
        for schedule_id in identifiers:
            with suppress(*_UNREADABLE), self._turn, self._database.session() as session:
                take_turns(session, f"schedule {schedule_id}")
                row = session.get(ScheduleRow, schedule_id)
                if row is not None:
                    _plan_anew(session, row, now)
            # Its timer waits by another clock, so it is set again also where the fire time stays.
            self.refresh(schedule_id)

    def _compare_clocks(self) -> None:
        """Note if the wall clock was set since the last call; also before fire times pass, as it may be set back."""
        shift = self._run_clock.shift()
        if shift is not None and shift.set_seconds:
            self._is_set.set()
            _LOG.warning("the wall clock was set by %.1f s: the next fire times are found anew", shift.set_seconds)

    def _pass_over(self, schedule_id: str, now: float) -> None:
        """Record fire times of a schedule that were missed while no service ran."""
        try:
            with self._database.session() as session:
                row = session.get(ScheduleRow, schedule_id)
                if row is not None:
                    self._settle(session, row, now, grace_seconds=0.0)
                    _plan_anew(session, row, now)
        except (*_UNREADABLE, IntegrityError) as error:
            # `refresh` logs why it is not scheduled.
            _LOG.debug("schedule %s cannot be settled: %r", schedule_id, error)

    def stop(self) -> None:
        """Stop the scheduler; returns when no firing is in progress any more."""
        self._stopping.set()
        self._rounds.stop()
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)
        self._lock.release()

    def refresh(self, schedule_id: str) -> None:
        """Reload a schedule from the table after a change; it no longer fires if disabled, deleted or unreadable."""
        with self._database.snapshot() as session:
            row = session.get(ScheduleRow, schedule_id)
        if row is None or not row.enabled or row.next_fire_at is None:
            self._remove(schedule_id)
            return
        try:
            self._scheduler.add_job(
                self.fire,
                trigger=read_schedule(row).trigger.trigger(),
                args=[schedule_id],
                id=schedule_id,
                replace_existing=True,
                next_run_time=datetime.fromtimestamp(row.next_fire_at, UTC),
            )
        except _UNREADABLE as error:
            self._remove(schedule_id)
            reason = reason_of(error) if isinstance(error, Problem) else repr(error)
            _LOG.error("schedule %s (%s) does not fire, because it cannot be read: %s", row.name, schedule_id, reason)

    def _remove(self, schedule_id: str) -> None:
        with suppress(JobLookupError):
            self._scheduler.remove_job(schedule_id)

    def fire(self, schedule_id: str) -> None:
        """Queue the run of a schedule that is due; fire times overdue by more than the grace count as missed.

        Retries while the database is locked or unreachable. Raises one of DATABASE_ERRORS when that lasts.
        """
        if not self._lock.is_held():
            _LOG.error("schedule %s does not fire: another scheduler has taken over", schedule_id)
            return
        due = self._patiently(lambda: self._settle_due(schedule_id))
        if due is not None:
            self._act(schedule_id, due)

    def _settle_due(self, schedule_id: str) -> _Due | None:
        # The listener for missed fire times runs concurrently with the jobs.
        with self._turn, self._database.session() as session:
            take_turns(session, f"schedule {schedule_id}")
            self._compare_clocks()
            row = session.get(ScheduleRow, schedule_id)
            return None if row is None else self._settle(session, row, self._clock.wall(), self._grace_seconds)

    def _patiently(self, step: Callable[[], _T]) -> _T:
        """Retry a step, up to _ATTEMPTS times, on DATABASE_ERRORS; each attempt waits some seconds for the database."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return step()
            except DATABASE_ERRORS as error:
                _LOG.warning("a schedule waits for the database: %s", error)
                if self._stopping.wait(_PAUSE_SECONDS):
                    raise
        return step()

    def _settle(self, session: Session, row: ScheduleRow, now: float, grace_seconds: float) -> _Due | None:
        """Record every fire time up to `now`, and set the next one; returns the last if its run is to be queued.

        The last fire time is missed if it is overdue by more than `grace_seconds`. 0 means that no service was running:
        every fire time that has passed was missed.
        """
        first = row.next_fire_at
        if first is None or first > now or not row.enabled:
            return None
        stored = read_schedule(row)
        trigger = stored.trigger.trigger()
        passed = [first, *fire_times_until(trigger, first, now, _MISSED_COUNTED)]
        row.next_fire_at = next(iter(fire_times(trigger, now, 1)), None)
        last = passed[-1]
        in_time = grace_seconds > 0 and now - last <= grace_seconds
        missed = passed[:-1] if in_time else passed
        reason = "no service was running" if grace_seconds == 0 else "the service was delayed"
        for number, due_at in enumerate(missed[:MISSED_LISTED], start=1):
            more = len(missed) - MISSED_LISTED if number == MISSED_LISTED else 0
            detail = f"{reason}; {more} more were missed after this one" if more > 0 else reason
            session.add(FiringRow(schedule_id=row.id, due_at=due_at, outcome=MISSED, run_id=None, detail=detail))
        session.flush()
        _forget_old(session, row.id)
        if not in_time:
            return None
        firing = FiringRow(
            schedule_id=row.id,
            due_at=last,
            outcome=FAILED,
            run_id=None,
            detail="the service ended before it had queued the run",
        )
        session.add(firing)
        session.flush()
        return _Due(firing.id, stored.request, row.name, row.target_blocks)

    def _act(self, schedule_id: str, due: _Due) -> None:
        result = self._outcome(schedule_id, due)
        self._patiently(lambda: self._record(due, *result))

    def _record(self, due: _Due, outcome: str, run_id: str | None, detail: str) -> None:
        with self._database.session() as session:
            firing = session.get(FiringRow, due.firing_id)
            if firing is not None:
                firing.outcome, firing.run_id, firing.detail = outcome, run_id, detail

    def _outcome(self, schedule_id: str, due: _Due) -> tuple[str, str | None, str]:
        """Queue the run unless the schedule's previous run still waits; returns outcome, run id or None, and detail."""
        who = f"schedule {due.schedule_name}"
        try:
            if (waiting := self._patiently(lambda: self._waiting_run(schedule_id))) is not None:
                return MISSED, None, f"run {waiting}, which this schedule queued before, still waits for its target"
            # If this fails, nothing is left behind.
            run_id = self._patiently(lambda: self._submit(due.request, who, schedule_id, due.target_blocks))
            is_held_to_name = isinstance(due.request.target, DeviceTarget) and due.target_blocks is None
            return QUEUED, run_id, HELD_TO_NAME if is_held_to_name else ""
        except Problem as problem:
            return FAILED, None, str(problem)
        except OSError as error:
            _LOG.warning("schedule %s could not queue its run: %s", schedule_id, error)
            return FAILED, None, f"the run's journal cannot be written: {error.strerror or error}"
        except Exception as error:
            _LOG.exception("schedule %s could not queue its run", schedule_id)
            return FAILED, None, f"the run could not be queued: {error!r}"

    def _waiting_run(self, schedule_id: str) -> str | None:
        waits = (RunRow.schedule_id == schedule_id, RunRow.state == RunState.QUEUED.value)
        with self._database.snapshot() as session:
            return session.scalars(select(RunRow.id).where(*waits).limit(1)).first()

    def _on_missed(self, event: JobExecutionEvent) -> None:
        try:
            self.fire(event.job_id)
        except Exception:
            _LOG.exception("a missed fire time of schedule %s could not be recorded", event.job_id)


def _plan_anew(session: Session, row: ScheduleRow, now: float) -> None:
    """Set the next fire time to the first one that is still to come, if a wrong clock has passed over that.

    Fire times that are to come and count as missed do so no longer; those that were acted on are not repeated.
    """
    if not row.enabled or (row.next_fire_at is not None and row.next_fire_at <= now):
        return
    to_come = (FiringRow.schedule_id == row.id, FiringRow.due_at > now)
    session.execute(delete(FiringRow).where(*to_come, FiringRow.outcome == MISSED))
    acted_on = set(session.scalars(select(FiringRow.due_at).where(*to_come)))
    times = fire_times(read_schedule(row).trigger.trigger(), now, len(acted_on) + 1)
    row.next_fire_at = next((at for at in times if at not in acted_on), row.next_fire_at)


def _forget_old(session: Session, schedule_id: str) -> None:
    """Keep only the newest FRUITLESS_KEPT firings without a run: a schedule of every second misses 86,400 a day."""
    is_fruitless = (FiringRow.schedule_id == schedule_id, FiringRow.outcome != QUEUED)
    newest = select(FiringRow.due_at).where(*is_fruitless).order_by(FiringRow.due_at.desc())
    oldest_kept = session.scalar(newest.offset(FRUITLESS_KEPT - 1).limit(1))
    if oldest_kept is not None:
        session.execute(delete(FiringRow).where(*is_fruitless, FiringRow.due_at < oldest_kept))
