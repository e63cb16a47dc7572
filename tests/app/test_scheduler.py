import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import create_engine
from tests.app.machine import ShiftedClock
from tests.app.scheduling import GRACE, HOURLY, NOW, REQUEST, Desk, add, add_run, firings, next_fire

from cliffwatch.app.scheduler import MISSED_LISTED, Scheduler
from cliffwatch.app.scheduler_lock import SchedulerLock
from cliffwatch.base.clock import SystemClock, VirtualClock
from cliffwatch.base.errors import Code, Problem
from cliffwatch.model.request import RunRequest
from cliffwatch.model.run_state import RunState
from cliffwatch.store.database import Database
from cliffwatch.store.models import ScheduleRow


def test_a_due_schedule_queues_its_run_and_moves_on(
    database: Database, scheduler: Scheduler, clock: VirtualClock, desk: Desk
) -> None:
    add(database, HOURLY)
    clock.advance_to(NOW + 3600 + 2)
    scheduler.fire("s")
    assert desk.orders == [(RunRequest.model_validate(REQUEST), "schedule nightly", "s")]
    assert firings(database) == [(3600, "queued", "run-1", "")]
    assert next_fire(database) == 7200


def test_a_schedule_that_is_not_due_does_nothing(database: Database, scheduler: Scheduler, desk: Desk) -> None:
    add(database, HOURLY)
    scheduler.fire("s")
    scheduler.fire("gone")
    assert (desk.orders, firings(database), next_fire(database)) == ([], [], 3600)


def test_a_fire_time_is_acted_on_once(
    database: Database, scheduler: Scheduler, clock: VirtualClock, desk: Desk
) -> None:
    add(database, HOURLY)
    clock.advance_to(NOW + 3600)
    scheduler.fire("s")
    scheduler.fire("s")
    assert len(desk.orders) == len(firings(database)) == 1


def test_a_fire_time_that_is_too_old_is_missed(
    database: Database, scheduler: Scheduler, clock: VirtualClock, desk: Desk
) -> None:
    add(database, HOURLY)
    clock.advance_to(NOW + 3600 + GRACE + 1)
    scheduler.fire("s")
    assert desk.orders == []
    assert firings(database) == [(3600, "missed", None, "the service was delayed")]
    assert next_fire(database) == 7200


def test_of_several_fire_times_that_passed_the_last_one_counts(
    database: Database, scheduler: Scheduler, clock: VirtualClock, desk: Desk
) -> None:
    add(database, HOURLY)
    clock.advance_to(NOW + 3 * 3600 + 5)
    scheduler.fire("s")
    assert [(due_at, outcome) for due_at, outcome, _, _ in firings(database)] == [
        (3600, "missed"), (7200, "missed"), (10_800, "queued"),
    ]  # fmt: skip
    assert len(desk.orders) == 1


def test_a_schedule_has_one_run_in_the_queue_at_most(
    database: Database, scheduler: Scheduler, clock: VirtualClock, desk: Desk
) -> None:
    add(database, HOURLY)
    for hour, state in enumerate((RunState.QUEUED, RunState.RUNNING, RunState.FINISHED), start=1):
        add_run(database, "before", state)
        clock.advance_to(NOW + hour * 3600)
        scheduler.fire("s")
    waits = "run before, which this schedule queued before, still waits for its target"
    assert firings(database) == [
        (3600, "missed", None, waits),
        (7200, "queued", "run-1", ""),
        (10800, "queued", "run-2", ""),
    ]


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (Problem(Code.TARGET_UNSAFE, "the drive is in use"), "the drive is in use"),
        (OSError(28, "No space left on device"), "No space left"),
    ],
)
def test_a_run_that_cannot_be_queued_is_a_failed_firing(
    database: Database, scheduler: Scheduler, clock: VirtualClock, desk: Desk, refusal: Exception, words: str
) -> None:
    add(database, HOURLY)
    desk.refusal = refusal
    clock.advance_to(NOW + 3600)
    scheduler.fire("s")
    [(due_at, outcome, run_id, detail)] = firings(database)
    assert (due_at, outcome, run_id) == (3600, "failed", None)
    assert words in detail
    assert next_fire(database) == 7200


def test_a_service_that_dies_while_it_queues_leaves_a_failed_firing(
    database: Database, scheduler: Scheduler, clock: VirtualClock, desk: Desk
) -> None:
    add(database, HOURLY)
    desk.look = lambda: firings(database)
    clock.advance_to(NOW + 3600)
    scheduler.fire("s")
    assert desk.seen == [[(3600, "failed", None, "the service ended before it had queued the run")]]


def test_firings_due_while_no_service_ran_are_missed_and_not_run_late(
    database: Database, scheduler: Scheduler, clock: VirtualClock, desk: Desk
) -> None:
    add(database, HOURLY)
    # One second late: within the grace of a service that runs, but this one did not.
    clock.advance_to(NOW + 7200 + 1)
    scheduler.start()
    scheduler.stop()
    assert desk.orders == []
    assert [(due_at, outcome, detail) for due_at, outcome, _, detail in firings(database)] == [
        (3600, "missed", "no service was running"), (7200, "missed", "no service was running"),
    ]  # fmt: skip
    assert next_fire(database) == 10_800


def test_a_date_that_passed_while_no_service_ran_never_comes(
    database: Database, scheduler: Scheduler, clock: VirtualClock, desk: Desk
) -> None:
    add(database, {"kind": "date", "at": "2026-09-21T15:00:00Z"})
    clock.advance_to(NOW + 86_400)
    scheduler.start()
    scheduler.stop()
    assert (desk.orders, next_fire(database), len(firings(database))) == ([], None, 1)


def test_a_long_absence_is_recorded_in_bounds(database: Database, scheduler: Scheduler, clock: VirtualClock) -> None:
    add(database, {"kind": "interval", "every": "1m"})
    clock.advance_to(NOW + 60 * (MISSED_LISTED + 40) + 1)
    scheduler.start()
    scheduler.stop()
    recorded = firings(database)
    assert len(recorded) == MISSED_LISTED
    assert recorded[-1][3].endswith("40 more were missed after this one")
    assert next_fire(database) == 60 * (MISSED_LISTED + 41)


def test_missed_firings_are_kept_up_to_a_bound(
    database: Database, scheduler: Scheduler, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cliffwatch.app.scheduler.FRUITLESS_KEPT", 3)
    add(database, HOURLY)
    clock.advance_to(NOW + 3600 + 1)
    scheduler.fire("s")
    clock.advance_to(NOW + 6 * 3600 + GRACE + 1)
    scheduler.fire("s")
    assert [(due_at, outcome) for due_at, outcome, _, _ in firings(database)] == [
        (3600, "queued"), (4 * 3600, "missed"), (5 * 3600, "missed"), (6 * 3600, "missed"),
    ]  # fmt: skip


def test_a_disabled_schedule_neither_fires_nor_misses(
    database: Database, scheduler: Scheduler, clock: VirtualClock, desk: Desk
) -> None:
    add(database, HOURLY, enabled=False)
    clock.advance_to(NOW + 86_400)
    scheduler.start()
    scheduler.fire("s")
    scheduler.stop()
    assert (desk.orders, firings(database)) == ([], [])


def test_a_schedule_fires_by_itself_until_it_is_disabled(database: Database, lock: SchedulerLock, desk: Desk) -> None:
    clock = SystemClock()
    scheduler = Scheduler(database, clock, lock, GRACE, desk.submit)
    scheduler.start()
    try:
        add(database, {"kind": "interval", "every": "1s"}, clock.wall())
        scheduler.refresh("s")
        assert desk.came.wait(30)
        with database.session() as session:
            session.get_one(ScheduleRow, "s").enabled = False
        scheduler.refresh("s")
    finally:
        scheduler.stop()
    recorded = firings(database)
    assert {outcome for _, outcome, _, _ in recorded} == {"queued"}
    assert len(recorded) == len(desk.orders)


def test_a_second_scheduler_is_refused_until_the_first_one_ends(
    database: Database, lock: SchedulerLock, tmp_path: Path
) -> None:
    second = SchedulerLock(tmp_path / "scheduler.lock", database.engine, SystemClock(), patience_seconds=0)
    with pytest.raises(Problem) as caught:
        second.acquire()
    assert caught.value.code is Code.CONFLICT
    assert not second.is_held()
    lock.release()
    second.acquire()
    assert second.is_held()
    assert not lock.is_held()
    second.release()


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_database_has_one_scheduler_wherever_it_runs(database: Database, lock: SchedulerLock, tmp_path: Path) -> None:
    elsewhere = SchedulerLock(tmp_path / "elsewhere.lock", database.engine, SystemClock(), patience_seconds=0)
    with pytest.raises(Problem, match="another service"):
        elsewhere.acquire()
    lock.release()
    elsewhere.acquire()
    elsewhere.release()


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_scheduler_that_lost_its_database_lock_does_not_fire(
    database: Database, scheduler: Scheduler, lock: SchedulerLock, clock: VirtualClock, desk: Desk, tmp_path: Path
) -> None:
    add(database, HOURLY)
    clock.advance_to(NOW + 3600)
    with database.engine.connect() as connection:
        end = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
        connection.exec_driver_sql(end)
    other = SchedulerLock(tmp_path / "elsewhere.lock", database.engine, SystemClock())
    other.acquire()
    scheduler.fire("s")
    assert desk.orders == []
    other.release()
    scheduler.fire("s")
    assert len(desk.orders) == 1


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    program = """
import sys, time
from pathlib import Path
from sqlalchemy import create_engine
from cliffwatch.base.clock import SystemClock
from cliffwatch.app.scheduler_lock import SchedulerLock
SchedulerLock(Path(sys.argv[1]), create_engine("sqlite://"), SystemClock()).acquire()
print("held", flush=True)
time.sleep(600)
"""
    path = tmp_path / "scheduler.lock"
    with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        lock = SchedulerLock(path, create_engine("sqlite://"), SystemClock(), patience_seconds=0)
        with pytest.raises(Problem):
            lock.acquire()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    lock.acquire()
    lock.release()


@pytest.mark.parametrize("acts", ["fires", "starts"])
def test_a_clock_that_was_ahead_for_a_while_skips_no_fire_time_that_is_to_come(
    database: Database, lock: SchedulerLock, desk: Desk, acts: str
) -> None:
    clock = ShiftedClock()
    clock.stand_still()
    clock.set_by_seconds = NOW - clock.wall()
    scheduler = Scheduler(database, clock, lock, GRACE, desk.submit)
    add(database, HOURLY)
    clock.passed_seconds += 3600.0
    scheduler.fire("s")
    assert [outcome for _, outcome, _, _ in firings(database)] == ["queued"]
    clock.set_by_seconds += 365 * 86400.0 + 1800.0
    scheduler.fire("s")
    assert (next_fire(database) or 0) > 365 * 86400
    clock.set_by_seconds -= 365 * 86400.0 + 1801.0
    if acts == "starts":
        scheduler = Scheduler(database, clock, lock, GRACE, desk.submit)
        scheduler._pass_over("s", clock.wall())
    else:
        scheduler.look_at_clock()
    # The one that was acted on is to come again, by that second, and is not repeated.
    assert (next_fire(database), [outcome for _, outcome, _, _ in firings(database)]) == (7200, ["queued"])
    clock.passed_seconds += 3600.0 + 2.0
    scheduler.fire("s")
    assert len(desk.orders) == 2


def test_a_single_fire_time_that_was_missed_by_a_wrong_clock_fires(
    database: Database, lock: SchedulerLock, desk: Desk
) -> None:
    clock = ShiftedClock()
    clock.stand_still()
    clock.set_by_seconds = NOW - clock.wall()
    scheduler = Scheduler(database, clock, lock, GRACE, desk.submit)
    at = datetime.fromtimestamp(NOW + 3600, UTC).isoformat()
    add(database, {"kind": "date", "at": at})
    clock.set_by_seconds += 86400.0
    scheduler.fire("s")
    clock.set_by_seconds -= 86400.0
    scheduler.look_at_clock()
    clock.passed_seconds += 3600.0
    scheduler.fire("s")
    assert [outcome for _, outcome, _, _ in firings(database)] == ["queued"]
    scheduler.look_at_clock()
    scheduler.fire("s")
    assert len(desk.orders) == 1
