"""The tables. Times are seconds since the epoch; runs, findings and workloads are an index over journals.

Documents are JSON text, not a JSON column: they are read whole, never queried into, and are the same bytes in SQLite
and PostgreSQL.
"""

import json
from typing import Any

from sqlalchemy import BigInteger, Dialect, Float, ForeignKey, Index, Integer, MetaData, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

from cliffwatch.base.finite_json import finite, lenient_json


class Json(TypeDecorator[Any]):
    """A JSON value as text. Values are replaced, never changed in place.

    Text that is no JSON, which only damage explains, is read as None: one row cannot keep the others from being read.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(finite(value), separators=(",", ":"), sort_keys=True)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        try:
            return None if value is None else lenient_json(value)[0]
        except (ValueError, TypeError):
            return None


class BaseRow(DeclarativeBase):
    """The metadata; constraint names are fixed so that migrations can name them on every database."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {float: Float(53), dict[str, Any]: Json, list[str]: Json, list[Any]: Json}  # noqa: RUF012  SQLAlchemy reads it


class WorkloadRow(BaseRow):
    """One version of a workload; versions of a name count from 1."""

    __tablename__ = "workloads"
    __table_args__ = (UniqueConstraint("name", "version"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    version: Mapped[int]
    document: Mapped[dict[str, Any]]
    #: SHA-256 of the normalised document: says whether a submitted one is a new version.
    digest: Mapped[str]
    created_at: Mapped[float]


class RunRow(BaseRow):
    """What a run's journal says, as far as it has been read (`events_offset_bytes`)."""

    __tablename__ = "runs"
    __table_args__ = (
        Index("ix_runs_created_at_id", "created_at", "id"),
        Index("ix_runs_state_created_at_id", "state", "created_at", "id"),
        Index("ix_runs_workload_name_created_at_id", "workload_name", "created_at", "id"),
        Index("ix_runs_verdict_created_at_id", "verdict", "created_at", "id"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    directory: Mapped[str]
    workload_name: Mapped[str]
    #: None where the workload came with the order and has no version.
    workload_version: Mapped[int | None]
    engine: Mapped[str]
    target: Mapped[str]
    #: What two runs must not share: the drive or the directory behind the target.
    target_key: Mapped[str]
    #: Digest of the request that made the run; distinguishes a repeated request from another one with the same id.
    request_digest: Mapped[str]
    state: Mapped[str]
    since: Mapped[float]
    phase: Mapped[str | None]
    verdict: Mapped[str | None]
    reasons: Mapped[list[str]]
    stop_requested: Mapped[bool]
    created_at: Mapped[float]
    started_at: Mapped[float | None]
    finished_at: Mapped[float | None]
    load_start: Mapped[float | None]
    load_stop: Mapped[float | None]
    #: Seconds of load that were asked for.
    planned_seconds: Mapped[float]
    #: No foreign key: a run outlives the schedule that asked for it.
    schedule_id: Mapped[str | None] = mapped_column(index=True)
    created_by: Mapped[str]
    #: None for a run of this service's own.
    imported_at: Mapped[float | None]
    windows: Mapped[int]
    last_window_end: Mapped[float | None]
    #: Fields of RunFigures and points of a Curve (cliffwatch.report); None until the run is over and has a report.
    figures: Mapped[dict[str, Any] | None]
    curve: Mapped[list[Any] | None]
    #: Just behind the last event that was read, and that event's id (its line).
    events_offset_bytes: Mapped[int] = mapped_column(BigInteger)
    last_event_id: Mapped[int]


class FindingRow(BaseRow):
    """A finding event of a run."""

    __tablename__ = "findings"
    __table_args__ = (Index("ix_findings_at_run_id_event_id", "at", "run_id", "event_id"),)

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    event_id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    at: Mapped[float]
    #: The event's name: the kind of finding.
    name: Mapped[str]
    detail: Mapped[dict[str, Any]]


class ScheduleRow(BaseRow):
    """When to queue which run. `request` is the body that creates the run."""

    __tablename__ = "schedules"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    request: Mapped[dict[str, Any]]
    trigger: Mapped[dict[str, Any]]
    enabled: Mapped[bool]
    #: None when it will not fire again, or is disabled.
    next_fire_at: Mapped[float | None]
    created_at: Mapped[float]
    created_by: Mapped[str]


class FiringRow(BaseRow):
    """What came of a moment at which a schedule was due: `queued`, `missed` or `failed`."""

    __tablename__ = "schedule_firings"
    __table_args__ = (UniqueConstraint("schedule_id", "due_at"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    schedule_id: Mapped[str] = mapped_column(ForeignKey("schedules.id", ondelete="CASCADE"))
    due_at: Mapped[float]
    outcome: Mapped[str]
    run_id: Mapped[str | None]
    detail: Mapped[str]


class KeptAlertRow(BaseRow):
    """An alert that was taken from Alertmanager and could not be written into its run's journal yet."""

    __tablename__ = "kept_alerts"

    #: No foreign key: a rebuild of the index takes runs away for a moment.
    run_id: Mapped[str] = mapped_column(primary_key=True)
    fingerprint: Mapped[str] = mapped_column(primary_key=True)
    starts_at: Mapped[float] = mapped_column(primary_key=True)
    status: Mapped[str] = mapped_column(primary_key=True)
    received_at: Mapped[float]
    #: The line for the journal, as JSON.
    event: Mapped[dict[str, Any]]


class TokenRow(BaseRow):
    """A bearer token; only the SHA-256 of its secret is kept."""

    __tablename__ = "tokens"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    scope: Mapped[str]
    hash: Mapped[str]
    created_at: Mapped[float]
    revoked_at: Mapped[float | None]
