"""What an engine wrote into a directory goes when its run is over."""

from collections.abc import Callable
from pathlib import Path

from cliffwatch.base.errors import Problem
from cliffwatch.gate import remove_run_directory, run_directory
from cliffwatch.journal.events import EventType
from cliffwatch.model.order import RunOrder
from cliffwatch.model.target import DirectoryTarget


def remove_files(order: RunOrder, record_event: Callable[..., None]) -> None:
    """Remove them. What cannot be removed is recorded; it does not fail the run."""
    if not isinstance(order.target, DirectoryTarget):
        return
    path = run_directory(Path(order.target.path), order.run_id)
    try:
        remove_run_directory(path, order.run_id)
    except (Problem, OSError) as error:
        record_event(EventType.NOTE, "files_left_behind", path=str(path), message=str(error))
