"""Remove the files that engines wrote into a target directory, once the run is over.

Paths are read from the journal: by the time a worker resumes the run, the target's path may lead elsewhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.base.errors import Problem
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.gate import remove_run_directory, run_directory
from cliffwatch.journal import JournalReader
from cliffwatch.journal.events import CLAIMED, LEFT_BEHIND, EventType
from cliffwatch.machine.births import described_at
from cliffwatch.model.order import RunOrder
from cliffwatch.model.part_names import ONLY_PART
from cliffwatch.model.request import Submission
from cliffwatch.model.run_state import RunState
from cliffwatch.model.target import DATABASE_SCHEMA, DirectoryTarget, PostgresTarget


@dataclass(frozen=True, slots=True)
class _Made:
    """A directory that the run made. `identity`: its inode and birth; None where the journal does not have them."""

    path: Path
    identity: str | None


def remove_files(
    order: RunOrder,
    journal: Path,
    record_event: Callable[..., None],
    *,
    was_cleared: bool = False,
    hung: Sequence[ProcessIdentity] = (),
) -> None:
    """Remove the run's files. Files that cannot be removed or were moved are recorded; they do not fail the run.

    `was_cleared`: each part has tried to empty its newest directory while holding it, even if that had been moved.
    `hung`: processes of the run that do not end; access to their files would hang, too.
    """
    for part, target in order.parts.items():
        if isinstance(target, DirectoryTarget):
            _remove(_made(order, part, target, journal), order, journal, record_event, was_cleared, hung)


def note_databases(order: RunOrder, record_event: Callable[..., None]) -> None:
    """Record that what a run made in databases is still there: no part of the run is left to drop it."""
    for target in order.parts.values():
        if isinstance(target, PostgresTarget):
            message = f"the run was given up; DROP SCHEMA {DATABASE_SCHEMA} CASCADE where its comment names this run"
            record_event(EventType.NOTE, LEFT_BEHIND, path=str(target), message=message)


def _remove(
    places: tuple[Path, list[_Made]],
    order: RunOrder,
    journal: Path,
    record_event: Callable[..., None],
    was_cleared: bool,
    hung: Sequence[ProcessIdentity],
) -> None:
    likely, made = places
    if hung:
        reason = f"{' and '.join(process.waits_in() for process in hung)} does not end; remove them when it is gone"
        for path in dict.fromkeys(each.path for each in made):
            record_event(EventType.NOTE, LEFT_BEHIND, path=str(path), message=reason)
        return
    said = _said(journal)
    present = {}
    for path in dict.fromkeys([likely, *(each.path for each in made)]):
        present[path] = described_at(path)
        try:
            remove_run_directory(path, order.run_id)
        except (Problem, OSError) as error:
            # The part that held the target may have recorded the same.
            if (str(path), str(error)) not in said:
                record_event(EventType.NOTE, LEFT_BEHIND, path=str(path), message=str(error))
    for each in made[:-1] if was_cleared else made:
        found = present[each.path]
        if found is None or each.identity not in (None, found):
            message = (
                f"{each.path} is not there as it was made ({each.identity or 'by an earlier worker'}): it was moved "
                "or removed, or its file system is not mounted; remove what is left of it"
            )
            record_event(EventType.NOTE, LEFT_BEHIND, path=str(each.path), message=message)


def _said(journal: Path) -> set[tuple[object, object]]:
    """Path and message of files that are already recorded as not removed."""
    events = (stored.event for stored in JournalReader(journal).events())
    return {
        (event.detail.get("path"), event.detail.get("message"))
        for event in events
        if event.type is EventType.NOTE and event.name == LEFT_BEHIND
    }


def _made(order: RunOrder, part: str, target: DirectoryTarget, journal: Path) -> tuple[Path, list[_Made]]:
    """Expected path of a part's own directory, and all directories that it made according to the journal."""
    place, made, has_run = target.path, dict[_Made, None](), False
    for number, stored in enumerate(JournalReader(journal).events()):
        event = stored.event
        if number == 0:
            asked = Submission.from_detail(event.detail, str(target)).asked
            place = dict(zip(order.parts, asked, strict=False)).get(part, asked[0]).path or place
        has_run |= event.type is EventType.STATE and event.name == RunState.RUNNING
        is_claim = event.type is EventType.DEVICE and event.name == CLAIMED and bool(event.detail.get("path"))
        if is_claim and event.detail.get("part", ONLY_PART) == part:
            each = _Made(Path(str(event.detail["path"])), event.detail.get("directory"))
            # The newest comes last.
            made.pop(each, None)
            made[each] = None
    likely = run_directory(Path(place), order.run_id)
    if has_run and not made:
        # Journals of earlier versions have no claims.
        made[_Made(likely, None)] = None
    return likely, list(made)
