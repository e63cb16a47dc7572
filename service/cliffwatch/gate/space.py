"""Check that a plan stays within its target and leaves enough space free."""

import os
import stat
from pathlib import Path

from cliffwatch.base.units import format_share, format_size
from cliffwatch.gate.examination import Examination
from cliffwatch.gate.objections import OBJECTIONS, Objection
from cliffwatch.machine.inventory import Drive, volume_of
from cliffwatch.machine.sysfs import PROC, SYS
from cliffwatch.model.plan import LoadPlan, PlannedWrite
from cliffwatch.model.target import WITHOUT_DRIVE

#: Unit of st_blocks, whatever the file system's own blocks are: stat(2).
_STAT_BLOCK_BYTES = 512


def objections_to_plan(
    examination: Examination,
    plan: LoadPlan,
    reserve_ratio: float,
    *,
    resumed: bool = False,
    sys: Path = SYS,
    proc: Path = PROC,
) -> list[Objection]:
    """Objections to a plan that would write outside its target or leave too little space free.

    Refused are files outside the run's own directory, files that exist already (unless `resumed`), a device that is too
    small, and a plan that leaves less than `reserve_ratio` free on the volume, or on one that holds a loop device's
    file.
    """
    if examination.is_device:
        return _objections_on_device(examination, plan, reserve_ratio, sys, proc)
    if any(OBJECTIONS[objection.code].field == "target.path" for objection in examination.objections):
        # Nothing can be examined below a path that is no directory, or another run's.
        return []
    if examination.volume is None:
        return [_outside(write, examination) for write in plan.writes]
    objections = []
    for write in plan.writes:
        objections += _objections_to_file(write, examination, resumed)
    if not objections:
        needed = sum(max(0, write.size_bytes - _allocated_bytes(write.path)) for write in plan.writes)
        objections += _space_objections(examination.path.parent, needed, reserve_ratio, sys, proc)
    return objections


def free_bytes_of(examination: Examination) -> int | None:
    """Bytes that are free to this user on the volume of a directory target; None for other targets."""
    if examination.directory is None:
        return None
    space = os.statvfs(examination.path.parent)
    return space.f_bavail * space.f_frsize


def notes_on_plan(examination: Examination, plan: LoadPlan, memory_bytes: int) -> list[str]:
    """A note if the page cache may answer reads in place of the drive, which affects the result; else empty."""
    largest = sum(write.size_bytes for write in plan.writes)
    if examination.volume is None or plan.direct or not plan.writes or largest >= 2 * memory_bytes:
        return []
    return [
        f"the page cache is in use and the files ({format_size(largest)}) are less than twice the memory "
        f"({format_size(memory_bytes)}): reads may never reach the drive"
    ]


def _objections_on_device(
    examination: Examination, plan: LoadPlan, reserve_ratio: float, sys: Path, proc: Path
) -> list[Objection]:
    drive = examination.drives[0]
    objections = [_outside(write, examination) for write in plan.writes if write.path != examination.path]
    largest = max((write.size_bytes for write in plan.writes), default=0)
    if largest > drive.size_bytes:
        message = f"{format_size(largest)} would be written to {drive.name}, which has {format_size(drive.size_bytes)}"
        objections.append(Objection("device_too_small", f"{message}; make the workload smaller"))
    if not objections:
        for leaf in drive.leaves:
            objections += _backing_objections(leaf, largest, reserve_ratio, sys, proc)
    return objections


def _objections_to_file(write: PlannedWrite, examination: Examination, resumed: bool) -> list[Objection]:
    # The run's own directory is resolved already; only `..` or a link in it could lead out of it.
    real_parent = write.path.parent.resolve()
    if real_parent != examination.path and examination.path not in real_parent.parents:
        return [_outside(write, examination)]
    try:
        status = write.path.lstat()
    except FileNotFoundError:
        return []
    # Another name of the file may be anywhere on the volume.
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        return [Objection("outside_target", f"{write.path} is not a plain file of one name; remove it")]
    if not resumed:
        return [Objection("file_exists", f"{write.path} is there already; remove it")]
    return []


def _outside(write: PlannedWrite, examination: Examination) -> Objection:
    allowed = "nowhere" if examination.target.kind in WITHOUT_DRIVE else f"to {examination.path}"
    return Objection("outside_target", f"{write.path} would be written; this run may write {allowed} only")


def _space_objections(place: Path, needed_bytes: int, reserve_ratio: float, sys: Path, proc: Path) -> list[Objection]:
    if needed_bytes == 0:
        return []
    space, volume = os.statvfs(place), volume_of(place, sys, proc)
    total, available = space.f_blocks * space.f_frsize, space.f_bavail * space.f_frsize
    reserve = reserve_ratio * total
    if available - needed_bytes < reserve:
        message = (
            f"{format_size(needed_bytes)} would be written to {volume.mount_point}, where {format_size(available)} of "
            f"{format_size(total)} are free and {format_size(reserve)} ({format_share(reserve_ratio)}) must stay free"
        )
        return [Objection("reserve", f"{message}; write less or make room")]
    objections = []
    for drive in volume.drives:
        objections += _backing_objections(drive, needed_bytes, reserve_ratio, sys, proc)
    return objections


def _backing_objections(
    drive: Drive, needed_bytes: int, reserve_ratio: float, sys: Path, proc: Path
) -> list[Objection]:
    """Objections if the volume that holds a loop device's file has too little space; empty for other drives.

    Writing to a loop device over a sparse file takes space on that volume.
    """
    if drive.backing_file is None:
        return []
    try:
        growth = min(needed_bytes, max(0, drive.size_bytes - _allocated_bytes(drive.backing_file, missing_ok=False)))
        return _space_objections(drive.backing_file.parent, growth, reserve_ratio, sys, proc)
    except OSError as error:
        message = f"the file behind {drive.name} cannot be examined ({error}), nor the space that it may still take"
        return [Objection("reserve", f"{message}; attach the loop device to a file that is there")]


def _allocated_bytes(path: Path, missing_ok: bool = True) -> int:
    try:
        return path.lstat().st_blocks * _STAT_BLOCK_BYTES
    except FileNotFoundError:
        if not missing_ok:
            raise
        return 0
