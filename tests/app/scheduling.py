"""A schedule `s` of every hour, where its runs are submitted, and what came of it."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select

from cliffwatch.model.request import RunRequest
from cliffwatch.model.run_state import RunState
from cliffwatch.model.trigger import anchored, fire_times, parse_trigger
from cliffwatch.store.database import Database
from cliffwatch.store.models import FiringRow, RunRow, ScheduleRow

#: 13:46:40 UTC, 2026-09-21.
NOW = 1_790_000_000.0
GRACE = 60.0
REQUEST = {"workload": "steady", "target": {"kind": "synthetic", "name": "nowhere"}, "durations": {}}


@dataclass(slots=True)
class Desk:
    """Where runs are submitted: remembers them, and refuses on request."""

    orders: list[tuple[RunRequest, str, str]] = field(default_factory=list)
    blocks: list[str | None] = field(default_factory=list)
    refusal: BaseException | None = None
    look: Callable[[], object] | None = None
    seen: list[object] = field(default_factory=list)
    came: threading.Event = field(default_factory=threading.Event)

    def submit(self, request: RunRequest, created_by: str, schedule_id: str, blocks: str | None) -> str:
        self.orders.append((request, created_by, schedule_id))
        self.blocks.append(blocks)
        if self.look is not None:
            self.seen.append(self.look())
        self.came.set()
        if self.refusal is not None:
            raise self.refusal
        return f"run-{len(self.orders)}"


def add(database: Database, trigger: dict[str, Any], at: float = NOW, *, enabled: bool = True) -> None:
    """A schedule `s`, made at `at`."""
    stored = anchored(parse_trigger(trigger), at)
    with database.session() as session:
        session.add(
            ScheduleRow(
                id="s",
                name="nightly",
                request=REQUEST,
                trigger=stored,
                enabled=enabled,
                next_fire_at=fire_times(parse_trigger(stored).trigger(), at, 1)[0] if enabled else None,
                created_at=at,
                created_by="tester",
            )
        )


def add_run(database: Database, run_id: str, state: RunState) -> None:
    """A run that the schedule `s` asked for."""
    columns = RunRow.__table__.columns
    empty = {column.key: None for column in columns if column.nullable}
    texts = dict.fromkeys(("directory", "workload_name", "engine", "target", "target_key", "request_digest"), "-")
    numbers = dict.fromkeys(
        ("since", "created_at", "planned_seconds", "windows", "events_offset_bytes", "last_event_id"), 0
    )
    fields = empty | texts | numbers | {"reasons": [], "stop_requested": False, "created_by": "tester"}
    with database.session() as session:
        session.merge(RunRow(**fields | {"id": run_id, "state": state.value, "schedule_id": "s"}))


def firings(database: Database) -> list[tuple[float, str, str | None, str]]:
    with database.snapshot() as session:
        rows = session.scalars(select(FiringRow).order_by(FiringRow.due_at))
        return [(row.due_at - NOW, row.outcome, row.run_id, row.detail) for row in rows]


def next_fire(database: Database) -> float | None:
    with database.snapshot() as session:
        at = session.get_one(ScheduleRow, "s").next_fire_at
    return None if at is None else at - NOW


HOURLY = {"kind": "interval", "every": "1h"}
