"""A schedule that is due while the database is locked, as a backup locks it for a minute or two."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError
from tests.app.scheduling import HOURLY, NOW, Desk, add, firings, next_fire

from cliffwatch.app.scheduler import Scheduler
from cliffwatch.base.clock import VirtualClock
from cliffwatch.store.database import PATIENCE_SECONDS, Database


@contextmanager
def locked(database: Database, seconds: float) -> Iterator[None]:
    """The schedules are locked for so long, as a backup does."""
    statement = "BEGIN EXCLUSIVE" if database.file else "LOCK TABLE schedules IN ACCESS EXCLUSIVE MODE"
    is_held = threading.Event()

    def hold() -> None:
        engine = create_engine(database.engine.url)
        raw = engine.raw_connection()
        raw.cursor().execute(statement)
        is_held.set()
        time.sleep(seconds)
        raw.rollback()
        raw.close()
        engine.dispose()

    holder = threading.Thread(target=hold)
    holder.start()
    assert is_held.wait(10)
    yield
    holder.join()


def test_a_time_that_meets_a_locked_database_is_caught_up_once(
    database: Database, scheduler: Scheduler, clock: VirtualClock, desk: Desk
) -> None:
    """Locked while it is due, for longer than one transaction waits."""
    add(database, HOURLY)
    clock.advance_to(NOW + 3600 + 2)
    with locked(database, PATIENCE_SECONDS + 3.0):
        scheduler.fire("s")
    assert firings(database) == [(3600, "queued", "run-1", "")]
    scheduler.fire("s")
    assert len(desk.orders) == 1
    assert next_fire(database) == 7200


def test_a_run_that_meets_a_locked_database_is_queued_once_it_is_free(
    database: Database, scheduler: Scheduler, clock: VirtualClock, desk: Desk
) -> None:
    add(database, HOURLY)
    clock.advance_to(NOW + 3600 + 2)
    locks = [OperationalError("", {}, sqlite3.OperationalError("database is locked"))] * 2

    def refuse() -> None:
        desk.refusal = locks.pop() if locks else None

    desk.look = refuse
    scheduler.fire("s")
    assert [(outcome, run_id) for _, outcome, run_id, _ in firings(database)] == [("queued", "run-3")]
