"""Workloads by name and version. A version never changes; submitting a changed document makes the next one."""

import hashlib
import json

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.suggestion import did_you_mean
from cliffwatch.model.workload import Workload
from cliffwatch.store.database import take_turns
from cliffwatch.store.models import WorkloadRow


def digest_of(workload: Workload) -> str:
    """SHA-256 of the normalised document, in hex."""
    document = json.dumps(workload.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(document.encode()).hexdigest()


def find_workload(session: Session, name: str, version: int | None = None) -> WorkloadRow | None:
    """A version of a workload, by default the newest; None where there is none."""
    query = select(WorkloadRow).where(WorkloadRow.name == name)
    if version is not None:
        query = query.where(WorkloadRow.version == version)
    return session.scalars(query.order_by(WorkloadRow.version.desc()).limit(1)).first()


def require_workload(session: Session, name: str, version: int | None = None) -> WorkloadRow:
    """A version of a workload, by default the newest. Raises Problem(not_found) with a suggestion."""
    row = find_workload(session, name, version)
    if row is not None:
        return row
    newest = find_workload(session, name)
    if newest is not None:
        detail, remedy = f"there is no workload {name}@{version}", f"the newest is {name}@{newest.version}"
    else:
        detail = f"there is no workload {name}"
        meant = did_you_mean(name, session.scalars(select(WorkloadRow.name).distinct()))
        remedy = meant.removeprefix("; ") or "`cliffwatch workload list` shows those there are; `workload add` adds one"
    raise Problem(Code.NOT_FOUND, detail, [FieldFault("workload", remedy)])


def put_workload(session: Session, workload: Workload, now: float) -> tuple[WorkloadRow, bool]:
    """Store a workload as a new version of its name; returns its row, and False if it equals the newest version."""
    take_turns(session, f"workload {workload.name}")
    newest = find_workload(session, workload.name)
    if newest is not None and newest.digest == digest_of(workload):
        return newest, False
    return add_version(session, workload, 1 if newest is None else newest.version + 1, now), True


def add_version(session: Session, workload: Workload, version: int, now: float) -> WorkloadRow:
    row = WorkloadRow(
        name=workload.name,
        version=version,
        document=workload.model_dump(mode="json"),
        digest=digest_of(workload),
        created_at=now,
    )
    session.add(row)
    session.flush()
    return row


def add_built_in(session: Session, workload: Workload, now: float) -> None:
    """Store a workload that comes with the program, unless an equal version exists; a user's newer one stays newest."""
    known = select(func.count()).where(WorkloadRow.name == workload.name, WorkloadRow.digest == digest_of(workload))
    if session.scalar(known) == 0:
        put_workload(session, workload, now)
