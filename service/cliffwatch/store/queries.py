"""Queries of the tables, some of them by page. `after` is the sort key of the previous page's last item."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Select, Text, and_, cast, func, or_, select, tuple_
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from cliffwatch.base.errors import Code, Problem
from cliffwatch.model.run_state import RunState, VerdictName
from cliffwatch.model.target import parse_targets
from cliffwatch.store.models import FindingRow, FiringRow, RunRow, ScheduleRow, TokenRow, WorkloadRow

Row = TypeVar("Row")
Key = Sequence[Any]


def is_readable() -> ColumnElement[bool]:
    """SQL condition: a run's row has known enum values; another program may have written into the table."""
    has_verdict = or_(RunRow.verdict.is_(None), RunRow.verdict.in_([verdict.value for verdict in VerdictName]))
    return and_(RunRow.state.in_([state.value for state in RunState]), has_verdict)


def has_known_words(row: RunRow) -> bool:
    """Whether a row that was read has known enum values and a readable target."""
    has_verdict = row.verdict is None or row.verdict in set(VerdictName)
    return row.state in set(RunState) and has_verdict and is_target(row.target)


def is_target(text: str) -> bool:
    """Whether the targets in the text of a run's row can be parsed."""
    try:
        parse_targets(text)
    except Problem:
        return False
    return True


def require_run(session: Session, run_id: str) -> RunRow:
    """Row of a run. Raises Problem: not_found, and database_unavailable for a row that cannot be read."""
    row = session.get(RunRow, run_id)
    if row is None:
        raise Problem(Code.NOT_FOUND, f"there is no run {run_id}")
    if not has_known_words(row):
        words = (
            f"the database's row of run {run_id} is damaged; `cliffwatch index rebuild` makes it of the journal again"
        )
        raise Problem(Code.DATABASE_UNAVAILABLE, words)
    return row


def unfinished_runs(session: Session) -> list[RunRow]:
    """Runs that are not finished, in the order of their creation."""
    query = select(RunRow).where(RunRow.state != RunState.FINISHED.value).order_by(RunRow.created_at, RunRow.id)
    return list(session.scalars(query))


def runs_page(
    session: Session,
    limit: int,
    after: Key | None = None,
    state: str | None = None,
    workload: str | None = None,
    verdict: str | None = None,
    labels: Mapping[str, str | None] | None = None,
) -> list[RunRow]:
    """Page of runs, newest first, by (created_at, id), with all of these `labels`, of which None is any value. An
    unreadable row is left out: the next start recreates it."""
    query = select(RunRow).where(is_readable())
    if state is not None:
        query = query.where(RunRow.state == state)
    if workload is not None:
        query = query.where(RunRow.workload_name == workload)
    if verdict is not None:
        query = query.where(RunRow.verdict == verdict)
    for name, value in (labels or {}).items():
        # An exact comparison, with case, on both databases, unlike LIKE. In JSON text no value can look like a label.
        text = "" if value is None else json.dumps(value)
        label, stored = f"{json.dumps(name)}:{text}", cast(RunRow.labels, Text)
        query = query.where(func.replace(stored, label, "") != stored)
    return _page(session, query, [RunRow.created_at, RunRow.id], limit, after, newest_first=True)


def findings_page(
    session: Session, limit: int, after: Key | None = None, run_id: str | None = None
) -> list[FindingRow]:
    """Page of findings, newest first, by (at, run_id, event_id)."""
    query = select(FindingRow)
    if run_id is not None:
        query = query.where(FindingRow.run_id == run_id)
    keys = [FindingRow.at, FindingRow.run_id, FindingRow.event_id]
    return _page(session, query, keys, limit, after, newest_first=True)


def first_findings(session: Session, run_ids: Sequence[str], names: Sequence[str]) -> dict[str, FindingRow]:
    """First finding of each run, by run id, that has one of these names and was not refuted since.

    Runs without such a finding are left out.
    """
    query = select(FindingRow).where(FindingRow.run_id.in_(run_ids), FindingRow.name.in_(names))
    rows = session.scalars(query.order_by(FindingRow.run_id, FindingRow.event_id.desc()))
    return {row.run_id: row for row in rows if (row.detail or {}).get("confirmed", True)}


def workloads_page(session: Session, limit: int, after: Key | None = None) -> list[WorkloadRow]:
    """Page of workloads in order of their names, each in its newest version."""
    other = aliased(WorkloadRow)
    newest = select(func.max(other.version)).where(other.name == WorkloadRow.name).scalar_subquery()
    query = select(WorkloadRow).where(WorkloadRow.version == newest)
    return _page(session, query, [WorkloadRow.name], limit, after)


def schedules_page(session: Session, limit: int, after: Key | None = None) -> list[ScheduleRow]:
    """Page of schedules in order of their names."""
    return _page(session, select(ScheduleRow), [ScheduleRow.name], limit, after)


def firings_page(session: Session, schedule_id: str, limit: int, after: Key | None = None) -> list[FiringRow]:
    """Page of a schedule's firings (outcomes of its fire times), newest first, by (due_at, id)."""
    query = select(FiringRow).where(FiringRow.schedule_id == schedule_id)
    return _page(session, query, [FiringRow.due_at, FiringRow.id], limit, after, newest_first=True)


def last_firing(session: Session, schedule_id: str, outcome: str | None = None) -> FiringRow | None:
    """Newest firing of a schedule, with `outcome` the newest of that outcome; None where there is none."""
    query = select(FiringRow).where(FiringRow.schedule_id == schedule_id)
    if outcome is not None:
        query = query.where(FiringRow.outcome == outcome)
    return session.scalars(query.order_by(FiringRow.due_at.desc()).limit(1)).first()


def count_schedules(session: Session) -> dict[bool, int]:
    """Number of enabled schedules (key True) and of disabled ones (key False), also if zero."""
    rows = session.execute(select(ScheduleRow.enabled, func.count()).group_by(ScheduleRow.enabled))
    return {True: 0, False: 0} | {enabled: count for enabled, count in rows}  # noqa: C416  a row is no tuple


def count_firings(session: Session) -> dict[str, int]:
    """Number of fire times in schedule_firings by outcome: `queued`, `missed`, `failed`; a count of 0 is left out."""
    rows = session.execute(select(FiringRow.outcome, func.count()).group_by(FiringRow.outcome))
    return {outcome: count for outcome, count in rows}  # noqa: C416  as above


def next_fire_times(session: Session) -> list[tuple[str, float]]:
    """Name and next fire time of each schedule that will fire."""
    rows = session.execute(select(ScheduleRow.name, ScheduleRow.next_fire_at))
    return [(name, at) for name, at in rows if at is not None]


def tokens_page(session: Session, limit: int, after: Key | None = None) -> list[TokenRow]:
    """Page of tokens in order of (created_at, id), revoked ones included."""
    return _page(session, select(TokenRow), [TokenRow.created_at, TokenRow.id], limit, after)


def count_runs_by_state(session: Session) -> dict[str, int]:
    """Number of runs in every state, zero included."""
    counts = dict.fromkeys((state.value for state in RunState), 0)
    rows = session.execute(select(RunRow.state, func.count()).group_by(RunRow.state))
    for state, count in rows:
        counts[state] = count
    return counts


def _page(
    session: Session,
    query: Select[Row],
    keys: Sequence[InstrumentedAttribute[Any]],
    limit: int,
    after: Key | None,
    *,
    newest_first: bool = False,
) -> list[Row]:
    if after is not None:
        key: ColumnElement[Any] = tuple_(*keys)
        query = query.where(key < tuple_(*after) if newest_first else key > tuple_(*after))
    order = [column.desc() if newest_first else column.asc() for column in keys]
    return list(session.scalars(query.order_by(*order).limit(limit)))
