"""Restore the stored workload versions that runs name, from the runs' journals."""

import logging
from pathlib import Path

from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from cliffwatch.app.orders import read_order
from cliffwatch.journal import EventType, JournalReader
from cliffwatch.model.request import Submission
from cliffwatch.model.workload import Workload
from cliffwatch.store.models import RunRow, WorkloadRow
from cliffwatch.store.workloads import add_version, digest_of

_LOG = logging.getLogger(__name__)


def restore_workloads(session: Session, paths: list[Path]) -> dict[str, str]:
    """Store, for every workload version that an indexed run names, the document that the run was made from.

    Returns a message for each journal from which the workload cannot be restored, by run.
    """
    faults: dict[str, str] = {}
    known = {(row.name, row.version): row for row in session.scalars(select(WorkloadRow))}
    displaced: list[Workload] = []
    for path in paths:
        try:
            with session.begin_nested():
                _restore_workload(session, path, known, displaced)
        except OperationalError:
            raise  # It is the database that fails, not this journal.
        except Exception as error:
            _LOG.debug("the workload of run %s cannot be restored", path.name, exc_info=True)
            faults[path.name] = f"its workload cannot be restored: {error!r:.500}"
    for workload in displaced:
        versions = [row for (name, _), row in known.items() if name == workload.name]
        if all(row.digest != digest_of(workload) for row in versions):
            version = max(row.version for row in versions) + 1
            known[(workload.name, version)] = add_version(
                session, workload, version, min(r.created_at for r in versions)
            )
    session.flush()
    return faults


def _restore_workload(
    session: Session, path: Path, known: dict[tuple[str, int], WorkloadRow], displaced: list[Workload]
) -> None:
    reader = JournalReader(path)
    order = read_order(reader)
    row = session.get_one(RunRow, path.name)
    if row.workload_version is None:
        return
    first = next(stored.event for stored in reader.events() if stored.event.type is EventType.STATE)
    original = Submission.from_detail(first.detail, row.target).original_of(order.workload)
    key = (original.name, row.workload_version)
    present = known.get(key)
    if present is None:
        made = add_version(session, original, row.workload_version, order.created_at)
        session.flush()
        known[key] = made
        return
    other = _workload_in(present)
    if other is None or present.digest != digest_of(original):
        displaced += [] if other is None else [other]
        present.document = original.model_dump(mode="json")
        present.digest = digest_of(original)


def _workload_in(row: WorkloadRow) -> Workload | None:
    """The workload that a row holds; None where the row is damaged."""
    try:
        return Workload.model_validate(row.document)
    except ValidationError:
        return None
