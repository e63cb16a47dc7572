"""The run's target in the hands of its worker: looked at again, and left clean."""

from cliffwatch.analysis.run_evidence import LoadEnd
from cliffwatch.base.errors import Problem
from cliffwatch.gate import (
    Examination,
    HeldTarget,
    Objection,
    directory_of,
    examine,
    is_same_device,
    is_same_directory,
    place_of,
    require_clear,
    shares_a_drive,
)
from cliffwatch.journal import JournalReader
from cliffwatch.journal.events import EventType
from cliffwatch.model.request import Submission
from cliffwatch.worker.context import RunContext
from cliffwatch.worker.load import LoadOutcome
from cliffwatch.worker.run_files import LEFT_BEHIND


def examine_again(context: RunContext) -> Examination:
    """The target as it is now. Raises Problem, also when it is not what it was when the run was asked for: a link leads
    elsewhere, or another file or drive has the name of the one that may be erased."""
    order = context.order
    # The service looked at the directory of all journals; the run knows its own.
    examination = examine(order.target, order.run_id, journals=context.directory)
    first = next(JournalReader(context.directory).events())
    asked = Submission.from_detail(first.event.detail, str(order.target))
    path, present = str(order.target).partition(":")[2], place_of(examination)
    if asked.target_path is not None and asked.target_path != present:
        message = (
            f"{path} led to {asked.target_path} when the run was asked for and leads to {present} now; name the "
            "directory itself"
        )
        require_clear([Objection("target_changed", message)])
    found = directory_of(examination)
    if (
        asked.target_directory is not None
        and found is not None
        and not is_same_directory(asked.target_directory, found)
    ):
        message = (
            f"{path} was another directory when the run was asked for ({asked.target_directory}; now {found}): its "
            "file system is not mounted, another one is mounted over it, or it was made anew; submit the run again if "
            "this is the directory that is meant"
        )
        require_clear([Objection("target_changed", message)])
    _require_same_drive(examination, asked.target_blocks)
    return examination


def _require_same_drive(examination: Examination, asked: str | None) -> None:
    present = examination.blocks or ""
    is_same = is_same_device if examination.is_device else shares_a_drive
    if asked is None or is_same(asked, present):
        return
    remedy = "look at what is on it, and submit the run again if that may be lost"
    if not examination.is_device:
        remedy = "what is there may be a copy; submit the run again if this is the directory that is meant"
    path = str(examination.target).partition(":")[2]
    verb = "was" if examination.is_device else "was on"
    message = f"{path} {verb} another drive when the run was asked for ({asked}; now {present}); {remedy}"
    require_clear([Objection("target_changed", message)])


def keeps_files(context: RunContext, outcome: LoadOutcome) -> bool:
    """Whether what the engine wrote is wanted to look at: its workload asks for that, and its load failed."""
    return outcome.end is LoadEnd.FAILED and getattr(context.load, "keep_files", False)


def clear(context: RunContext, target: HeldTarget, outcome: LoadOutcome) -> None:
    """Remove what the engine wrote, while the run's own directory is held: its name may lead elsewhere by now.

    What a process hangs on would keep this one waiting, too.
    """
    if outcome.end is LoadEnd.INTERRUPTED or keeps_files(context, outcome) or context.hung():
        return
    try:
        place = target.clear()
    except (Problem, OSError) as error:
        context.record_event(EventType.NOTE, LEFT_BEHIND, path=str(target.path), message=str(error))
        return
    if place is not None:
        message = f"{target.path} was moved there while the run went on; its files were removed, remove what is left"
        context.record_event(EventType.NOTE, LEFT_BEHIND, path=str(place), message=message)
