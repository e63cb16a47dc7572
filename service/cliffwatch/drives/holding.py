"""Holding a target: the last look before the first write, and a claim that lasts as long as the run."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from cliffwatch.drives.device_gate import device_objections, not_exclusive
from cliffwatch.drives.examination import Examination
from cliffwatch.drives.inventory import drive_at, drives_by_identity, volume_of
from cliffwatch.drives.objections import Objection, require_clear
from cliffwatch.drives.run_directory import claimed
from cliffwatch.drives.sysfs import PROC, SYS, major_minor_order, number_of
from cliffwatch.drives.twins import twins_of
from cliffwatch.errors import Problem
from cliffwatch.runs.specification import DeviceTarget


@contextmanager
def hold(examination: Examination, *, sys: Path = SYS, proc: Path = PROC) -> Iterator[Path]:
    """Claim the examined target and yield the path to write to.

    A device is kept open exclusively under each of its names, and examined again once nobody else can claim it. Of a
    directory, the run's own one is made, marked and locked. Raises Problem(target_unsafe) when the examination had
    objections, when the target is no longer what was examined, or when somebody else has it.
    """
    require_clear(examination.objections)
    if isinstance(examination.target, DeviceTarget):
        with _held_device(examination, examination.target, sys, proc):
            yield examination.path
    elif examination.volume is not None:
        with _held_directory(examination, sys, proc):
            yield examination.path
    else:
        yield examination.path


@contextmanager
def _held_device(examination: Examination, target: DeviceTarget, sys: Path, proc: Path) -> Iterator[None]:
    drive = examination.drives[0]
    nodes = {drive.major_minor: examination.path}
    nodes |= {twin.drive.major_minor: twin.drive.node for twin in twins_of(drive, sys).known}
    with ExitStack() as stack:
        # Always in one order, so that of two who want the same drives one gets them all.
        descriptors = {number: _exclusive(nodes[number], stack) for number in sorted(nodes, key=major_minor_order)}
        require_clear(_changes(examination, target, descriptors[drive.major_minor], sys))
        require_clear(device_objections(drive, held=descriptors, sys=sys, proc=proc))
        yield


def _exclusive(node: Path, stack: ExitStack) -> int:
    try:
        descriptor = os.open(node, os.O_RDONLY | os.O_EXCL)
    except OSError as error:
        require_clear([not_exclusive(node, error)])
        raise
    stack.callback(os.close, descriptor)
    return descriptor


def _changes(examination: Examination, target: DeviceTarget, descriptor: int, sys: Path) -> list[Objection]:
    examined = examination.drives[0]
    number = number_of(os.fstat(descriptor))
    message = (
        f"{examination.path} was the one drive named {target.identity!r} when it was examined and is not now; "
        "examine it again"
    )
    changed = [Objection("target_changed", message)]
    try:
        named = [drive.major_minor for drive in drives_by_identity(target.identity, sys)]
    except Problem:
        return changed
    if named != [number] or number != examined.major_minor:
        return changed
    present = drive_at(number, sys)
    same = (present.disk_sequence, present.size_bytes) == (examined.disk_sequence, examined.size_bytes)
    return [] if same else changed


@contextmanager
def _held_directory(examination: Examination, sys: Path, proc: Path) -> Iterator[None]:
    place, examined = examination.path.parent, examination.volume
    assert examined is not None, "a directory is on a volume"
    try:
        parent = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        require_clear([Objection("target_changed", f"{place} can no longer be opened: {error.strerror}")])
        raise
    try:
        # Asked of the descriptor: the directory that was opened may be below a volume that was unmounted since.
        present = volume_of(Path(f"/proc/self/fd/{parent}"), sys, proc)
        if (present.mount_point, present.major_minor) != (examined.mount_point, examined.major_minor):
            message = f"{place} was on {examined.mount_point} when it was examined and is on {present.mount_point} now"
            require_clear([Objection("target_changed", message)])
        with claimed(parent, examination.path, examination.run_id):
            yield
    finally:
        os.close(parent)
