"""Claim a target for as long as the run lasts, after a last check before the first write."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.gate.device_gate import lasting_objections, not_exclusive, open_exclusively
from cliffwatch.gate.examination import Examination
from cliffwatch.gate.objections import Objection, require_clear
from cliffwatch.gate.run_directory import claimed, clear_run_directory, mounted_in, refuse_mounts
from cliffwatch.machine.backing import FileIdentity
from cliffwatch.machine.descriptors import DELETED, name_of, open_directory
from cliffwatch.machine.inventory import drive_at, drives_by_identity, volume_of
from cliffwatch.machine.mounts import is_mounted
from cliffwatch.machine.sysfs import PROC, SYS, device_number, major_minor_order, number_of
from cliffwatch.machine.twins import twins_of
from cliffwatch.model.target import DeviceTarget


@dataclass(frozen=True, slots=True)
class HeldTarget:
    """A target that this process has claimed.

    `path` is its name, for people and plans. `descriptor` is open on the run's own directory or the device itself, and
    still refers to it if `path` leads elsewhere later; None where nothing is written to. `claimed` has the major:minor
    of every name under which a device was opened exclusively.
    """

    path: Path
    is_device: bool
    descriptor: int | None = None
    claimed: frozenset[str] = frozenset()

    def check(self) -> None:
        """Check that the target is still there. Raises Problem(target_missing)."""
        if self.descriptor is None:
            return
        status = os.fstat(self.descriptor)
        if self.is_device and device_number(self.path) != number_of(status):
            raise self._gone()
        if not self.is_device and status.st_nlink == 0:
            message = f"{self.path} was removed while the run went on; start the run anew and leave its directory alone"
            raise Problem(Code.TARGET_MISSING, "the run's directory is gone", [FieldFault("target.path", message)])

    def require_unused(self) -> None:
        """Check again that nothing else uses the claimed target; call this before each start of an engine.

        A claimed device can still be used through a name that its blocks got since, and something else may be mounted
        in the run's directory. Raises Problem: target_unsafe, or target_missing as `check` does.
        """
        self.check()
        if self.descriptor is None:
            return
        if not self.is_device:
            refuse_mounts(self.descriptor)
            return
        number = number_of(os.fstat(self.descriptor))
        assert number is not None, "a device has a number"
        try:
            found = lasting_objections(drive_at(number), held=self.claimed)
        except FileNotFoundError as error:
            raise self._gone() from error
        require_clear(found)

    def _gone(self) -> Problem:
        message = f"{self.path} is no longer the drive that the run began with; attach that again, and start anew"
        fault = FieldFault("target.identity", message)
        return Problem(Code.TARGET_MISSING, "the drive went away while the run went on", [fault])

    def displaced(self) -> str | None:
        """How the run's own directory was moved, removed, unmounted or mounted in since it was claimed; else None.

        An engine may go on without noticing, since its open files stay usable. Only names that the kernel has in memory
        are read, not the file system, which may be stalled.
        """
        if self.descriptor is None or self.is_device:
            return None
        place = name_of(self.descriptor)
        if place == self.path:
            inside = mounted_in(self.descriptor)
            return f"{' and '.join(inside)} was mounted in {self.path}" if inside else None
        if not is_mounted(self.descriptor):
            return f"the file system of {self.path} was unmounted"
        return f"{self.path} was removed" if place.name.endswith(DELETED) else f"{self.path} was moved to {place}"

    def clear(self) -> Path | None:
        """Remove what the run wrote into its directory; returns the directory's path if it was moved, else None.

        Raises Problem(target_unsafe) when something is mounted in it, and OSError.
        """
        if self.descriptor is None or self.is_device or os.fstat(self.descriptor).st_nlink == 0:
            return None
        clear_run_directory(self.descriptor)
        place = name_of(self.descriptor)
        return None if place == self.path or not is_mounted(self.descriptor) else place


@contextmanager
def hold(examination: Examination, *, sys: Path = SYS, proc: Path = PROC) -> Iterator[HeldTarget]:
    """Claim the examined target.

    A device is kept open exclusively under each of its names, so that no other process can claim it, and then examined
    again. In a directory target, the run's own directory is created, marked and locked. Raises Problem(target_unsafe)
    when the examination had objections, the target is no longer what was examined, or another process uses it.
    """
    require_clear(examination.objections)
    if isinstance(examination.target, DeviceTarget):
        with _held_device(examination, examination.target, sys, proc) as descriptors:
            own = descriptors[examination.drives[0].major_minor]
            claimed = frozenset(descriptors)
            yield HeldTarget(examination.path, is_device=True, descriptor=own, claimed=claimed)
    elif examination.volume is not None:
        with _held_directory(examination, sys, proc) as descriptor:
            yield HeldTarget(examination.path, is_device=False, descriptor=descriptor)
    else:
        yield HeldTarget(examination.path, is_device=False)


@contextmanager
def _held_device(examination: Examination, target: DeviceTarget, sys: Path, proc: Path) -> Iterator[dict[str, int]]:
    """Descriptors of the claimed device under each of its names, by major:minor."""
    drive = examination.drives[0]
    nodes = {drive.major_minor: examination.path}
    nodes |= {twin.drive.major_minor: twin.drive.node for twin in twins_of(drive, sys).known}
    with ExitStack() as stack:
        # Always in one order, so that of two processes that claim the same drives one gets all of them.
        descriptors = {
            number: _exclusive(nodes[number], number, stack) for number in sorted(nodes, key=major_minor_order)
        }
        require_clear(_changes(examination, target, descriptors[drive.major_minor], sys))
        require_clear(lasting_objections(drive, held=descriptors, sys=sys, proc=proc))
        yield descriptors


def _exclusive(node: Path, major_minor: str, stack: ExitStack) -> int:
    try:
        descriptor = open_exclusively(node, major_minor)
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
def _held_directory(examination: Examination, sys: Path, proc: Path) -> Iterator[int]:
    place, examined = examination.path.parent, examination.volume
    assert examined is not None, "a directory is on a volume"
    try:
        parent = open_directory(place)
    except OSError as error:
        remedy = "something else stands in its place by now; name the directory again"
        require_clear([Objection("target_changed", f"{place} can no longer be opened ({error.strerror}): {remedy}")])
        raise
    try:
        # By the descriptor: the directory that was opened may be below a volume that was unmounted since.
        present = volume_of(Path(f"/proc/self/fd/{parent}"), sys, proc)
        if (present.mount_point, present.major_minor) != (examined.mount_point, examined.major_minor):
            message = f"{place} was on {examined.mount_point} when it was examined and is on {present.mount_point} now"
            require_clear([Objection("target_changed", message)])
        if FileIdentity.of(os.fstat(parent)) != examination.directory:
            message = f"{place} is not the directory that was examined; examine it again"
            require_clear([Objection("target_changed", message)])
        with claimed(parent, examination.path, examination.run_id) as directory:
            yield directory
    finally:
        os.close(parent)
