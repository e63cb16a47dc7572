"""Attach, detach and clean up aging drives, also those whose processes were killed."""

import json
import os
import secrets
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from cliffwatch.base.clock import Clock, wait_until
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.base.programs import DRIVE, require_program
from cliffwatch.labs.aging.description import Description, FileSystem
from cliffwatch.labs.aging.directories import (
    DriveDirectory,
    check_unpartitioned,
    foreign_entries,
    place_of,
    places,
)
from cliffwatch.labs.aging.machine import (
    BUSY_PATIENCE_SECONDS,
    LoopDevice,
    attach_loop,
    detach_loop,
    flash_numbers,
    loop_devices,
    make_file_system,
    mount,
    mounts_over,
    unmount,
    unmount_command,
)
from cliffwatch.labs.aging.removal import check_content, remove
from cliffwatch.labs.aging.serving import end, require_running, serve
from cliffwatch.labs.aging.users import mounts_elsewhere, processes_on
from cliffwatch.machine.mounts import read_mounts
from cliffwatch.machine.signatures import SignaturesUnreadable, read_signatures

_FUSE = Path("/dev/fuse")


@dataclass(frozen=True, slots=True)
class AttachRequest:
    """Request for a new drive: settings of `cliffwatch-drive mount` by name, file system, unpartitioned share.

    `content_directory` is where the drive's content goes, if not into the drive's own directory.
    """

    settings: Mapping[str, Any]
    file_system: FileSystem = FileSystem.EXT4
    discard: bool = False
    unpartitioned: float = 0.0
    content_directory: Path | None = None


@dataclass(frozen=True, slots=True)
class AgingDrive:
    """Current state of an aging drive on this machine.

    `device` is None while it is not attached as a disk, `mount_point` while no file system of it is mounted, `url`
    while it is not served.
    """

    name: str
    serial: str
    directory: Path
    device: str | None
    size_bytes: int | None
    mount_point: Path | None
    url: str | None
    is_abandoned: bool

    @property
    def identity(self) -> str:
        """Identity of the drive for the safety gate, whatever its kernel name is."""
        return str(DriveDirectory(self.directory).file)


def attach(
    state_directory: Path,
    name: str,
    clock: Clock,
    order: AttachRequest | None = None,
    keeper: ProcessIdentity | None = None,
) -> AgingDrive:
    """Attach a drive as a disk and mount its file system; with `order` it is made first, without `order` it must exist.

    A drive that is already attached is returned unchanged. The process that keeps the drive is the caller during the
    call, then `keeper` (None: no process); when that process ends, the drive is orphaned. On failure the drive is
    detached again, a new one is removed, and Problem is raised.
    """
    place = place_of(state_directory, name)
    program = require_program(DRIVE, state_directory)
    _require_privilege()
    with place.exclusive_change():
        is_new = not place.exists()
        _check_existence(place, order, is_new)
        try:
            if order is not None:
                _describe(place, order)
            present, described = look(place), place.read()
            if present.device is not None and present.url is not None and not described.is_abandoned():
                return present
            _take_down(place, clock, keep_content=True)
            check_content(place)
            is_kept = described.is_kept or (not is_new and described.keeper is None)
            description = replace(described, keeper=ProcessIdentity.of(os.getpid()), is_kept=is_kept)
            place.write(description)
            _bring_up(place, description, program, clock, is_new=is_new)
            place.write(replace(place.read(), keeper=keeper))
        except BaseException:
            with suppress(Problem):
                _take_down(place, clock, keep_content=not is_new)
                if is_new:
                    remove(place)
                else:
                    place.write(replace(place.read(), keeper=None))
            raise
        return look(place)


def detach(state_directory: Path, name: str, clock: Clock, *, delete: bool = False) -> list[str]:
    """Unmount, detach and stop serving a drive, in that order; `delete` also removes its content.

    Returns a sentence on what is left in its directory. Raises Problem(conflict) that names the users of a layer, and
    leaves the layers below as they are; Problem(not_found); Problem(drive_invalid) if its content is another user's.
    """
    place = place_of(state_directory, name)
    if not place.directory.exists() or place.why_foreign():
        there = ", ".join(each.name for each in places(state_directory)) or "none"
        why = f": {foreign}" if (foreign := place.why_foreign()) else ""
        raise Problem(Code.NOT_FOUND, f"there is no aging drive {name!r}{why}; drives: {there}")
    _require_privilege()
    with place.exclusive_change():
        if delete:
            check_content(place)
        _take_down(place, clock, keep_content=not delete)
        return remove(place) if delete else []


def clean(state_directory: Path, clock: Clock) -> list[str]:
    """Take down drives that killed processes left behind; returns a sentence for each. Drives in use stay.

    In this state directory: drives whose serving process or keeper has ended, and drives that were only partly taken
    down. In other state directories: drives whose serving process has ended. Entries that are not drives stay and are
    listed. Raises Problem that names what could not be taken down, and why, after all other drives are processed.
    """
    program = require_program(DRIVE, state_directory)
    _require_privilege()
    said, failed = [], []
    for place in places(state_directory):
        if place.is_changing():
            # Another command is attaching or detaching it, and undoes its own failures.
            continue
        try:
            said += _clean_up(place, clock)
        except Problem as problem:
            failed.append(problem)
    said += [f"left what is no drive: {why}" for why in foreign_entries(state_directory)]
    try:
        said += _clean_others(program)
    except Problem as problem:
        failed.append(problem)
    if failed:
        raise Problem(failed[0].code, "; ".join([*said, *(problem.detail for problem in failed)]))
    return said


def _clean_up(place: DriveDirectory, clock: Clock) -> list[str]:
    """Take down one drive if it is orphaned or unfinished; remove it if unfinished or if only its keeper needed it."""
    with place.exclusive_change():
        if not place.exists():
            _take_down(place, clock, keep_content=True)
            place.check_description()
            return [f"removed the drive {place.name}", *remove(place)]
        description = place.read()
        if not _is_orphaned(place, description):
            return []
        is_kept = description.keeper is None or description.is_kept
        _take_down(place, clock, keep_content=is_kept)
        if not is_kept:
            return [f"removed the drive {place.name}", *remove(place)]
        if description.keeper is not None:
            place.write(replace(description, keeper=None))
        return [f"detached the drive {place.name}"]


def aging_drives(state_directory: Path) -> list[AgingDrive]:
    """The drives of a state directory, attached or not, by name."""
    found = []
    for place in places(state_directory):
        # A drive that is being made, or whose description is damaged, must not hide the others.
        with suppress(Problem):
            found.append(look(place))
    return found


def unreadable_drives(state_directory: Path) -> list[Problem]:
    """Problems of drives whose description is damaged, which `aging_drives` leaves out."""
    problems = []
    for place in places(state_directory):
        try:
            if place.exists():
                place.read()
        except Problem as problem:
            problems.append(problem)
    return problems


def look(place: DriveDirectory) -> AgingDrive:
    """State of a drive on this machine. Raises Problem(drive_invalid) when its description cannot be read."""
    description = place.read()
    loops = loop_devices(place)
    mounts = [mount_point for loop in loops for mount_point in loop.mount_points]
    served = place.served() if place.is_served() else None
    return AgingDrive(
        name=place.name,
        serial=description.serial,
        directory=place.directory,
        device=loops[0].name if loops else None,
        size_bytes=loops[0].size_bytes if loops else None,
        mount_point=place.files if place.files in mounts else next(iter(mounts), None),
        url=str(served["url"]) if served else None,
        is_abandoned=description.is_abandoned() and not description.is_kept,
    )


def _check_existence(place: DriveDirectory, order: AttachRequest | None, is_new: bool) -> None:
    place.check_description()
    if is_new and order is None:
        raise Problem(Code.NOT_FOUND, f"there is no aging drive {place.name!r}; say what it is to be like")
    if not is_new:
        place.read()
    if not is_new and order is not None:
        detail = f"the drive {place.name} already exists; attach it as it is, or detach it with --delete first"
        raise Problem(Code.CONFLICT, detail)


def _describe(place: DriveDirectory, order: AttachRequest) -> None:
    description = Description(
        serial=f"AGING{secrets.token_hex(4).upper()}",
        file_system=order.file_system,
        discard=order.discard,
        unpartitioned=check_unpartitioned(order.unpartitioned),
        keeper=ProcessIdentity.of(os.getpid()),
    )
    place.make(description, yaml.safe_dump(dict(order.settings), sort_keys=False), order.content_directory)


def _bring_up(place: DriveDirectory, description: Description, program: Path, clock: Clock, *, is_new: bool) -> None:
    serve(place, description, program, clock)
    name = attach_loop(place.file)
    (device,) = [device for device in loop_devices(place) if device.name == name]
    if description.file_system is FileSystem.NONE:
        return
    if not description.formatted and (is_new or not _has_file_system(place, device, description)):
        make_file_system(device.node, device.size_bytes, description)
    if not description.formatted:
        description = replace(description, formatted=True)
        place.write(description)
    mount(device.node, place.files, description)


def _has_file_system(place: DriveDirectory, device: LoopDevice, description: Description) -> bool:
    """Whether the drive has its file system although the description does not say so: the process was killed before it
    wrote that, or a user edited it. Raises Problem(drive_invalid) if the drive holds anything else, which must stay."""
    try:
        found = [signature.kind for signature in read_signatures(device.node)]
    except SignaturesUnreadable as error:
        raise Problem(Code.DRIVE_UNAVAILABLE, f"what is on the drive {place.name} cannot be read: {error}") from error
    is_written_to = not found and place.holds_data()
    if is_written_to or (found and found != [description.file_system.value]):
        held = ", ".join(found) or "data of an unknown kind, or a file system that was made by half"
        detail = (
            f"{place.description} says that no file system was made, and the drive holds {held}; put that "
            f"right, or delete the drive and its content with: cliffwatch drive detach {place.name} --delete"
        )
        raise Problem(Code.DRIVE_INVALID, detail)
    return bool(found)


def _take_down(place: DriveDirectory, clock: Clock, *, keep_content: bool) -> None:
    """Unmount, detach and stop serving a drive; lazily, even while it is in use, if its serving process is dead."""
    is_dead = not place.is_served()
    # Every access to the drive hangs while its serving process is stopped (SIGSTOP), and nothing here may hang.
    require_running(place)
    devices = loop_devices(place)
    _require_no_mounts_over(place, devices)
    if not is_dead:
        _require_no_second_mounts(place, devices)
        _require_no_mounts_elsewhere(place, devices, clock)
    for device in devices:
        for mount_point in device.mount_points:
            unmount(mount_point, clock, lazily=is_dead, device=device)
        detach_loop(device, clock, lazily=is_dead)
    end(place, clock, keep_content=keep_content)


def _require_no_mounts_over(place: DriveDirectory, devices: list[LoopDevice]) -> None:
    """Check that nothing else is mounted over the drive's own mounts, or in them. Raises Problem(conflict)."""
    if mounts := mounts_over(place, devices):
        found = ", ".join(f"{each.source} ({each.file_system}) at {each.mount_point}" for each in mounts)
        detail = f"mounted over the drive {place.name}, and not part of it: {found}"
        raise Problem(Code.CONFLICT, f"{detail}; unmount it with: {unmount_command(mounts)}, then try again")


def _require_no_second_mounts(place: DriveDirectory, devices: list[LoopDevice]) -> None:
    """Check that the drive's file system, or a directory of it, is not mounted elsewhere. Raises Problem(conflict)."""
    mounts = [each for each in read_mounts() if each.major_minor in {device.major_minor for device in devices}]
    if second := [each for each in mounts if each.mount_point != place.files]:
        points = ", ".join(str(each.mount_point) for each in second)
        detail = f"the drive {place.name} is mounted at {points} too; unmount it with: {unmount_command(second)}"
        raise Problem(Code.CONFLICT, f"{detail}, then try again")


def _require_no_mounts_elsewhere(place: DriveDirectory, devices: list[LoopDevice], clock: Clock) -> None:
    """Check that no other mount namespace has the drive mounted: it would be detached only in part. Raises
    Problem(conflict)."""
    found: list[str] = []

    def is_free() -> bool:
        nonlocal found
        found = mounts_elsewhere({*flash_numbers(place), *(each.major_minor for each in devices)})
        return not found

    if not wait_until(is_free, clock, BUSY_PATIENCE_SECONDS):
        detail = f"the drive {place.name} is mounted at {', '.join(found)}; unmount it there, or end what is named"
        here = processes_on(device.major_minor for device in devices)
        used = f"; {here.remedy()}" if here.runs or here.others else ""
        raise Problem(Code.CONFLICT, f"{detail}, then detach again{used}")


def _is_orphaned(place: DriveDirectory, description: Description) -> bool:
    devices = loop_devices(place)
    is_served = place.is_served()
    is_dead = not is_served and (bool(devices) or bool(flash_numbers(place)))
    # The process that detached it was killed, or gave up because the drive was in use.
    is_half = is_served and (not devices or any(device.is_detaching for device in devices))
    return is_dead or is_half or description.is_abandoned()


def _clean_others(program: Path) -> list[str]:
    """Run `cliffwatch-drive clean`, which takes down drives whose serving process was killed, in any state directory.
    Returns a sentence for each path."""
    done = subprocess.run([str(program), "clean"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Problem(Code.DRIVE_UNAVAILABLE, done.stderr.strip().removeprefix("cliffwatch-drive: "))
    removed: dict[str, list[str]] = json.loads(done.stdout)
    words = {"filesystems": "unmounted", "loop_devices": "detached", "drives": "unmounted"}
    return [f"{word} {path}" for kind, word in words.items() for path in removed[kind]]


def _require_privilege() -> None:
    if os.geteuid() != 0:
        raise Problem(Code.DRIVE_UNAVAILABLE, "only root may attach drives: run the command with sudo")
    if not _FUSE.exists():
        detail = f"this kernel serves no drives: {_FUSE} does not exist; `modprobe fuse`, or give it to the container"
        raise Problem(Code.DRIVE_UNAVAILABLE, detail)
