"""The tables. Times are seconds since the epoch; runs, findings and workloads are an index over journals.

Documents are JSON text, not a JSON column: they are read whole, never queried into, and are the same bytes in SQLite
and PostgreSQL.
"""

import json
import math
import os
from typing import Annotated, Any, ClassVar

from sqlalchemy import (
    BigInteger,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Text,
    UniqueConstraint,
    false,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator, TypeEngine

from cliffwatch.base.finite_json import finite, lenient_json

#: Path that is read in place of a malformed one, and does not exist; maximum length of a path (PATH_MAX).
_NOWHERE, _PATH_BYTES = "/nonexistent", 4095


class Json(TypeDecorator[Any]):
    """Column type of a JSON array or object (`kind`), stored as text. Assign a new value: changes in place are lost.

    Damaged text, which holds no such value, is read as None, or as an empty array or object with `has`, so that the
    other rows can still be read.
    """

    impl = Text
    cache_ok = True

    def __init__(self, kind: type[dict[str, Any]] | type[list[Any]], *, has: bool) -> None:
        super().__init__()
        self.kind = kind
        self.has = has

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(finite(value), separators=(",", ":"), sort_keys=True)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        if value is None:
            return None
        try:
            found = lenient_json(value)[0]
        except (ValueError, TypeError):
            found = None
        return found if isinstance(found, self.kind) else self.kind() if self.has else None


class _Sound(TypeDecorator[Any]):
    """Column type that reads a value of the wrong type, as of a damaged row, as `instead`.

    SQLite stores a value of any type in a column, and one damaged row must not keep the others from being read.
    """

    impl: TypeEngine[Any] | type[TypeEngine[Any]] = Text
    cache_ok = True
    kinds: ClassVar[tuple[type, ...]] = ()

    def __init__(self, instead: float | str | None) -> None:
        super().__init__()
        self.instead = instead

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        is_sound = isinstance(value, self.kinds) and (not isinstance(value, float) or math.isfinite(value))
        return value if value is None or is_sound else self.instead


class _SoundNumber(_Sound):
    impl = Float(53)
    cache_ok = True
    kinds = (float, int)


class _SoundCount(_Sound):
    impl = Integer
    cache_ok = True
    kinds = (int,)


class _SoundBytes(_SoundCount):
    impl = BigInteger
    cache_ok = True


class _SoundText(_Sound):
    impl = String
    cache_ok = True
    kinds = (str,)


class _SoundPath(_SoundText):
    """Column type of a path; a malformed one is read as a path that leads nowhere."""

    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        found = super().process_result_value(value, dialect)
        return found if found and "\0" not in found and len(os.fsencode(found)) <= _PATH_BYTES else self.instead


_Number = Annotated[float, mapped_column(_SoundNumber(0.0))]
_Path = Annotated[str, mapped_column(_SoundPath(_NOWHERE))]
_NumberOrNone = Annotated[float | None, mapped_column(_SoundNumber(None))]
_Count = Annotated[int, mapped_column(_SoundCount(0))]
_CountOrNone = Annotated[int | None, mapped_column(_SoundCount(None))]
_Bytes = Annotated[int, mapped_column(_SoundBytes(0))]
_Object = Annotated[dict[str, Any], mapped_column(Json(dict, has=True))]
_ObjectOrNone = Annotated[dict[str, Any] | None, mapped_column(Json(dict, has=False))]
_List = Annotated[list[Any], mapped_column(Json(list, has=True))]
_ListOrNone = Annotated[list[Any] | None, mapped_column(Json(list, has=False))]
_Id = Annotated[str, mapped_column(_SoundText(""), primary_key=True)]
_Words = Annotated[str, mapped_column(_SoundText(""))]
_WordsOrNone = Annotated[str | None, mapped_column(_SoundText(None))]


class BaseRow(DeclarativeBase):
    """Base class of the tables; constraint names are fixed so that migrations can name them on every database."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {float: Float(53)}  # noqa: RUF012  SQLAlchemy reads it


class WorkloadRow(BaseRow):
    """One version of a workload; the versions of each workload name are numbered from 1."""

    __tablename__ = "workloads"
    __table_args__ = (UniqueConstraint("name", "version"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[_Words]
    version: Mapped[_Count]
    document: Mapped[_Object]
    #: SHA-256 of the normalised document; a submitted document with another digest becomes a new version.
    digest: Mapped[str]
    created_at: Mapped[_Number]


class RunRow(BaseRow):
    """Row of a run: what its journal records, as far as it has been read (`events_offset_bytes`)."""

    __tablename__ = "runs"
    __table_args__ = (
        Index("ix_runs_created_at_id", "created_at", "id"),
        Index("ix_runs_state_created_at_id", "state", "created_at", "id"),
        Index("ix_runs_workload_name_created_at_id", "workload_name", "created_at", "id"),
        Index("ix_runs_verdict_created_at_id", "verdict", "created_at", "id"),
    )

    id: Mapped[_Id]
    directory: Mapped[_Path]
    workload_name: Mapped[_Words]
    #: None where the workload came with the run request and has no version.
    workload_version: Mapped[_CountOrNone]
    engine: Mapped[_Words]
    target: Mapped[_Words]
    #: The drives or the directory behind the target, which two runs must not share.
    target_key: Mapped[_Words]
    #: Digest of the request that made the run; distinguishes a repeated request from another one with the same id.
    request_digest: Mapped[str]
    state: Mapped[_Words]
    since: Mapped[_Number]
    phase: Mapped[_WordsOrNone]
    verdict: Mapped[_WordsOrNone]
    reasons: Mapped[_List]
    stop_requested: Mapped[bool]
    created_at: Mapped[_Number]
    started_at: Mapped[_NumberOrNone]
    finished_at: Mapped[_NumberOrNone]
    load_start: Mapped[_NumberOrNone]
    load_stop: Mapped[_NumberOrNone]
    #: Requested duration of the load, in seconds.
    planned_seconds: Mapped[_Number]
    #: No foreign key: a run outlives the schedule that queued it.
    schedule_id: Mapped[str | None] = mapped_column(_SoundText(None), index=True)
    created_by: Mapped[_Words]
    #: None for a run of this service's own.
    imported_at: Mapped[_NumberOrNone]
    windows: Mapped[_Count]
    last_window_end: Mapped[_NumberOrNone]
    #: Fields of RunFigures and points of a Curve (cliffwatch.report); None until the run is over and has a report.
    figures: Mapped[_ObjectOrNone]
    curve: Mapped[_ListOrNone]
    #: Annotations (cliffwatch.model).
    labels: Mapped[_Object] = mapped_column(server_default="{}")
    note: Mapped[_WordsOrNone]
    pinned: Mapped[bool] = mapped_column(server_default=false())
    #: Byte offset of the end of the last event that was read, and that event's id (its line).
    events_offset_bytes: Mapped[_Bytes]
    last_event_id: Mapped[_Count]


class FindingRow(BaseRow):
    """A finding event of a run."""

    __tablename__ = "findings"
    __table_args__ = (Index("ix_findings_at_run_id_event_id", "at", "run_id", "event_id"),)

    run_id: Mapped[str] = mapped_column(_SoundText(""), ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    event_id: Mapped[int] = mapped_column(_SoundCount(0), primary_key=True, autoincrement=False)
    at: Mapped[_Number]
    #: The event's name: the kind of finding.
    name: Mapped[_Words]
    detail: Mapped[_Object]


class ScheduleRow(BaseRow):
    """When to queue which run. `request` is the body of the request that creates the run.

    `target_blocks` is the composition of the run's drive when its erasure was confirmed: None for other targets, and
    for schedules of versions that did not record it.
    """

    __tablename__ = "schedules"

    id: Mapped[_Id]
    name: Mapped[str] = mapped_column(_SoundText(""), unique=True)
    request: Mapped[_Object]
    target_blocks: Mapped[_WordsOrNone]
    trigger: Mapped[_Object]
    enabled: Mapped[bool]
    #: None when it will not fire again, or is disabled.
    next_fire_at: Mapped[_NumberOrNone]
    created_at: Mapped[_Number]
    created_by: Mapped[_Words]


class FiringRow(BaseRow):
    """Outcome of a fire time of a schedule: `queued`, `missed` or `failed`."""

    __tablename__ = "schedule_firings"
    __table_args__ = (UniqueConstraint("schedule_id", "due_at"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    schedule_id: Mapped[str] = mapped_column(ForeignKey("schedules.id", ondelete="CASCADE"))
    due_at: Mapped[_Number]
    outcome: Mapped[_Words]
    run_id: Mapped[_WordsOrNone]
    detail: Mapped[_Words]


class TokenRow(BaseRow):
    """A bearer token; only the SHA-256 of its secret is kept."""

    __tablename__ = "tokens"

    id: Mapped[_Id]
    name: Mapped[_Words]
    scope: Mapped[_Words]
    hash: Mapped[_Words]
    created_at: Mapped[_Number]
    #: A time that cannot be read counts as revoked: damage does not make a token valid again.
    revoked_at: Mapped[float | None] = mapped_column(_SoundNumber(0.0))
