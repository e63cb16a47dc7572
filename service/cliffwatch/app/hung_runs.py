"""Finished runs with a hung process: it was killed, but waits in the kernel for a drive.

A write that the process had begun may still reach the target, and another run on that target would hang too.
"""

from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.gate import targets_overlap
from cliffwatch.model.run_state import RunState
from cliffwatch.store.models import RunRow


def hung_runs(session: Session, target_key: str) -> dict[str, list[ProcessIdentity]]:
    """Hung processes of finished runs whose target overlaps `target_key`: run id → processes."""
    query = select(RunRow.id, RunRow.directory, RunRow.target_key).where(RunRow.state == RunState.FINISHED.value)
    on_target = [row for row in session.execute(query) if targets_overlap(row.target_key, target_key)]
    found = {row.id: hung_processes(Path(row.directory)) for row in on_target}
    return {run_id: processes for run_id, processes in found.items() if processes}


def hung_processes(directory: Path) -> list[ProcessIdentity]:
    """The hung processes of a finished run."""
    heartbeat = Heartbeat.read(directory)
    return [] if heartbeat is None else [process for process in heartbeat.others() if process.is_killed()]
