"""Unfinished runs whose journal is gone: finished as failed in the index, until the journal is back.

A run's state is the last state event of its journal. Where there is no journal any more, its row is the only place that
can hold how the run ended: `state` is `finished`, and `events_offset_bytes` 0 says that nothing of a journal is in it.
When the journal is back, as after its disk was mounted again, the row is made of it anew.
"""

from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from cliffwatch.app.index import write_status
from cliffwatch.base.units import format_duration
from cliffwatch.journal import files
from cliffwatch.journal.state import RunStatus
from cliffwatch.model.run_state import RunState, VerdictName
from cliffwatch.store.models import RunRow

#: How long a journal must be gone, and no worker be alive, before its run is finished: its disk may be mounted again.
GONE_SECONDS = 30.0


def is_gone(directory: Path) -> bool:
    """Whether a journal is gone: without order.json no worker can execute its run. Raises OSError."""
    return not (directory / files.ORDER).is_file()


def finish_lost(session: Session, run_id: str, at: float) -> None:
    """Finish a run as failed in the index, since its journal is gone. The caller's transaction commits it."""
    row = session.get_one(RunRow, run_id)
    reason = (
        f"The journal {row.directory} is gone, and no worker was alive for {format_duration(GONE_SECONDS)}. What was "
        "measured is in it: when it is back there, the run continues as the journal says."
    )
    status = RunStatus(
        state=RunState.FINISHED,
        since=at,
        created_at=row.created_at,
        started_at=row.started_at,
        load_start=row.load_start,
        load_stop=row.load_stop,
        finished_at=at,
        verdict=VerdictName.FAILED,
        reasons=(reason,),
        phase=row.phase,
        stop_requested=row.stop_requested,
    )
    write_status(row, status)
    row.events_offset_bytes = row.last_event_id = 0


def returned_runs(session: Session) -> list[RunRow]:
    """Runs that were finished because their journal was gone, and whose journal is back."""
    query = select(RunRow).where(RunRow.state == RunState.FINISHED.value, RunRow.events_offset_bytes == 0)
    return [row for row in session.scalars(query) if _is_whole(Path(row.directory))]


def _is_whole(directory: Path) -> bool:
    return (directory / files.ORDER).exists() and (directory / files.EVENTS).exists()
