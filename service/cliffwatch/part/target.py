"""Target of a part: examine it again, claim it, check the engine's plan against it, and clean it up."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from cliffwatch.base.errors import Problem
from cliffwatch.engines.contract import EngineContext
from cliffwatch.gate import (
    Examination,
    HeldTarget,
    Objection,
    directory_of,
    examine,
    hold,
    is_same_device,
    is_same_directory,
    objections_to_plan,
    place_of,
    require_clear,
    shares_a_drive,
)
from cliffwatch.journal.events import CLAIMED, LEFT_BEHIND, EventType
from cliffwatch.machine.births import described_at
from cliffwatch.part.context import PartContext
from cliffwatch.part.lines import DriveBelow, Held

#: Directory of the engine's job files, in the run's journal.
SCRATCH = "engine"


@dataclass(frozen=True, slots=True)
class PartTarget:
    """A target that is claimed. `existed`: the run's own directory, or the device, existed before the claim.

    `are_drives_elsewhere`: the run watches drives of other hosts, and the drives below the target are not counted.
    """

    examination: Examination
    held: HeldTarget
    existed: bool
    are_drives_elsewhere: bool = False

    @property
    def drives(self) -> list[str]:
        """Drives at the bottom of the target, as major:minor."""
        return [drive.major_minor for drive in self.examination.drives]

    @property
    def counted_drives(self) -> list[str]:
        """Drives whose counters go into the run's windows, as major:minor; none if it watches drives elsewhere."""
        return [] if self.are_drives_elsewhere else self.drives

    def answer(self) -> Held:
        volume = self.examination.volume
        drives = self.examination.drives
        return Held(
            is_device=self.held.is_device,
            drives=tuple(DriveBelow(drive.name, drive.queue_depth, drive.major_minor) for drive in drives),
            mount_point=None if volume is None else str(volume.mount_point),
        )


@contextmanager
def claimed(context: PartContext) -> Iterator[PartTarget]:
    """Context manager: examine the target, and claim it until the `with` block ends. Raises Problem."""
    examination = examine_again(context)
    existed = examination.path.exists()
    with hold(examination) as held:
        if held.descriptor is not None and not held.is_device:
            context.record_event(EventType.DEVICE, CLAIMED, path=str(held.path), directory=described_at(held.path))
        target = PartTarget(examination, held, existed, context.order.run.drives is not None)
        (context.directory / SCRATCH).mkdir(exist_ok=True)
        plan = context.engine.plan(context.load, surroundings(context, target))
        reserve_ratio = context.workload.free_space_reserve_ratio
        require_clear(objections_to_plan(examination, plan, reserve_ratio, resumed=existed))
        yield target


def surroundings(context: PartContext, target: PartTarget) -> EngineContext:
    """Engine context as it would be if preparing took no time."""
    planned = EngineContext.planned(
        context.workload,
        context.order.run.target,
        context.run_clock.now(),
        run_id=context.order.run.run_id,
        path=target.held.path,
        is_device=target.held.is_device,
        scratch=context.directory / SCRATCH,
        state_directory=context.order.state_directory,
    )
    return replace(planned, descriptor=target.held.descriptor, resumed=target.existed)


def examine_again(context: PartContext) -> Examination:
    """Examine the target as it is now. Raises Problem, also when it has changed since the run was requested: a link
    leads elsewhere, or another file or drive has the name of the one that may be erased."""
    order = context.order
    target = order.run.target
    # The service checked the directory of all journals; the part knows only the run's own.
    examination = examine(target, order.run.run_id, journals=context.directory)
    path, present = str(target).partition(":")[2], place_of(examination)
    if order.asked_path is not None and order.asked_path != present:
        message = (
            f"{path} led to {order.asked_path} when the run was asked for and leads to {present} now; name the "
            "directory itself"
        )
        require_clear([Objection("target_changed", message)])
    asked, found = order.asked_directory, directory_of(examination)
    if asked is not None and found is not None and not is_same_directory(asked, found):
        message = (
            f"{path} was another directory when the run was asked for ({asked}; now {found}): its "
            "file system is not mounted, another one is mounted over it, or it was made anew; submit the run again if "
            "this is the directory that is meant"
        )
        require_clear([Objection("target_changed", message)])
    _require_same_drive(examination, order.asked_blocks)
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


def clear_files(context: PartContext, held: HeldTarget) -> None:
    """Remove the engine's files through the held descriptor of the run's directory: the path may lead elsewhere by now.

    Skipped while a process of the run hangs: the drive that blocks it would block this process, too.
    """
    if context.hung():
        return
    try:
        place = held.clear()
    except (Problem, OSError) as error:
        context.record_event(EventType.NOTE, LEFT_BEHIND, path=str(held.path), message=str(error))
        return
    if place is not None:
        message = f"{held.path} was moved there while the run went on; its files were removed, remove what is left"
        context.record_event(EventType.NOTE, LEFT_BEHIND, path=str(place), message=message)
