"""Loop devices, mounts and file systems of an aging drive, and the system's programs that change them."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.base.clock import Clock, wait_until
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.logs import last_line
from cliffwatch.labs.aging.description import Description, FileSystem
from cliffwatch.labs.aging.directories import DriveDirectory
from cliffwatch.labs.aging.users import users_of, users_of_device
from cliffwatch.machine.backing import read_loops
from cliffwatch.machine.modelled import is_modelled_drive
from cliffwatch.machine.mounts import Mount, foreign_mounts, mount_of, read_mounts
from cliffwatch.machine.signatures import default_search_path
from cliffwatch.machine.sysfs import SYS, read_number, read_text

#: A process may use a file system for a moment, such as an exporter that asks how full it is.
BUSY_PATIENCE_SECONDS = 5.0
_SECTOR_BYTES = 512


@dataclass(frozen=True, slots=True)
class LoopDevice:
    """A loop device over a drive's file, and its mount points, the newest first.

    `is_detaching`: it was detached while in use, and disappears when its last user closes it.
    """

    name: str
    size_bytes: int
    mount_points: tuple[Path, ...]
    major_minor: str = ""
    is_detaching: bool = False

    @property
    def node(self) -> Path:
        return Path("/dev") / self.name


def loop_devices(place: DriveDirectory) -> list[LoopDevice]:
    """The loop devices over the drive's file, whether or not it is still served."""
    mounts = read_mounts()
    served = flash_numbers(place)
    # Another mount namespace may have another drive under this name.
    others = {each.major_minor for each in [*mounts, *(other.mount for other in foreign_mounts())]} - served
    found = []
    for loop in read_loops():
        number = loop.backing.file.major_minor if loop.backing is not None else None
        if number not in served and (loop.backing_file != place.file or number in others):
            continue
        points = tuple(mount.mount_point for mount in reversed(mounts) if mount.major_minor == loop.major_minor)
        size_bytes = (read_number(loop.directory / "size") or 0) * _SECTOR_BYTES
        is_detaching = read_text(loop.directory / "loop" / "autoclear") == "1"
        found.append(LoopDevice(loop.name, size_bytes, points, loop.major_minor, is_detaching))
    return found


def flash_numbers(place: DriveDirectory) -> set[str]:
    """Device numbers (major:minor) of the FUSE mounts at the drive's `flash/`, even if the serving process is dead."""
    return {mount.major_minor for mount in read_mounts() if _is_flash(mount, place)}


def mounts_over(place: DriveDirectory, devices: Iterable[LoopDevice]) -> list[Mount]:
    """Mounts that are not the drive's, but on top of its mounts, inside them, or over a parent directory: unmounting
    the drive by path would unmount those instead."""
    mounts = {mount.mount_id: mount for mount in read_mounts()}
    numbers = {device.major_minor for device in devices}
    own = {each.mount_id for each in mounts.values() if each.major_minor in numbers or _is_flash(each, place)}

    def is_over(mount: Mount | None) -> bool:
        while mount is not None and mount.parent_id not in own:
            # The parent of the root mount is itself, or is not listed.
            mount = mounts.get(mount.parent_id) if mount.parent_id != mount.mount_id else None
        return mount is not None

    seen = {mount_of(mounts[number].mount_point).mount_id for number in own}
    return [mount for number, mount in mounts.items() if number not in own and (number in seen or is_over(mount))]


def mounts_below(directory: Path) -> list[Mount]:
    """Everything that is mounted in a directory."""
    return [mount for mount in read_mounts() if directory in mount.mount_point.parents]


def unmount_command(mounts: list[Mount]) -> str:
    """Shell command that unmounts `mounts`, the newest first."""
    return " && ".join(f"umount {_quoted(mount.mount_point)}" for mount in reversed(mounts))


def _quoted(path: Path) -> str:
    """Path quoted for a shell; if it is not UTF-8, in $'…' with hexadecimal escapes, which bash, zsh and ksh accept."""
    try:
        return shlex.quote(os.fsencode(path).decode())
    except UnicodeDecodeError:
        return (
            "$'"
            + "".join(
                chr(byte) if (chr(byte).isalnum() and byte < 128) or byte in b"/._-" else f"\\x{byte:02x}"
                for byte in os.fsencode(path)
            )
            + "'"
        )


def _is_flash(mount: Mount, place: DriveDirectory) -> bool:
    return mount.mount_point == place.flash and is_modelled_drive(mount)


def attach_loop(file: Path) -> str:
    """Attach a free loop device to `file`, with direct I/O; returns its name. Raises Problem(drive_unavailable)."""
    remedy = (
        "detach one that is not needed (`losetup --list` shows them); a container needs /dev/loop-control and nodes"
    )
    printed = run_program(
        ["losetup", "--find", "--show", "--direct-io=on", str(file)], "no loop device can be attached", remedy
    )
    return Path(printed.strip()).name


def detach_loop(device: LoopDevice, clock: Clock, *, lazily: bool) -> None:
    """Detach a loop device and wait until it is gone; with `lazily`, do not wait: the last user's close detaches it.

    Raises Problem(conflict) when it stays open.
    """
    attached = SYS / "block" / device.name / "loop" / "backing_file"
    try:
        remedy = "see the end of the kernel's log (dmesg)"
        run_program(["losetup", "--detach", str(device.node)], f"{device.node} cannot be detached", remedy)
    except Problem:
        # A device that was detached while in use disappears by itself with its last mount.
        if attached.exists():
            raise
    # The kernel detaches an open device when its last user closes it.
    if not lazily and not wait_until(lambda: not attached.exists(), clock, BUSY_PATIENCE_SECONDS):
        raise Problem(Code.CONFLICT, f"{device.node} is still in use; {users_of_device(device.node).remedy()}")


def unmount(directory: Path, clock: Clock, *, lazily: bool, device: LoopDevice | None = None) -> None:
    """Unmount `directory`: the drive's file, or with `device` that device's file system; `lazily`: even while in use.

    Raises Problem(conflict) that names the users, or another mount that the path leads to.
    """
    if lazily:
        _require_own(directory, device)
        remedy = "see the end of the kernel's log (dmesg)"
        run_program(["umount", "--lazy", str(directory)], f"{directory} cannot be unmounted", remedy)
        return
    said = ""

    def unmounted() -> bool:
        nonlocal said
        if not any(mount.mount_point == directory for mount in read_mounts()):
            return True
        _require_own(directory, device)
        done = _run(["umount", str(directory)])
        said = last_line(done.stderr).rstrip(".")
        return done.returncode == 0

    if not wait_until(unmounted, clock, BUSY_PATIENCE_SECONDS):
        users = users_of_device(device.node) if device else users_of(directory)
        raise Problem(Code.CONFLICT, f"{directory} cannot be unmounted ({said}); {users.remedy()}")


def _require_own(directory: Path, device: LoopDevice | None) -> None:
    mount = mount_of(directory)
    is_own = is_modelled_drive(mount) if device is None else mount.major_minor == device.major_minor
    if not is_own:
        there = f"{mount.source} ({mount.file_system}) at {mount.mount_point}"
        raise Problem(Code.CONFLICT, f"{directory} leads to what is no part of the drive: {there}; unmount that first")


def make_file_system(node: Path, size_bytes: int, description: Description) -> None:
    """Make the described file system on all but the unpartitioned share of the disk, without discards (TRIM)."""
    used_bytes = int(size_bytes * (1.0 - description.unpartitioned)) // 4096 * 4096
    programs = {
        # No lazy initialisation: its writes would come later and be counted as load.
        FileSystem.EXT4: [
            *("mkfs.ext4", "-q", "-F", "-m", "0", "-b", "4096"),
            *("-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", str(node), f"{used_bytes // 1024}k"),
        ],
        FileSystem.XFS: ["mkfs.xfs", "-q", "-f", "-K", "-d", f"size={used_bytes}", str(node)],
    }
    remedy = "make the drive larger (ext4 needs 256KiB, xfs 300MiB), or choose another with --file-system"
    run_program(programs[description.file_system], f"no file system can be made on {node}", remedy)


def mount(node: Path, directory: Path, description: Description) -> None:
    options = f"noatime,{'discard' if description.discard else 'nodiscard'}"
    command = ["mount", "-t", description.file_system.value, "-o", options, str(node), str(directory)]
    run_program(command, f"{node} cannot be mounted", "see the end of the kernel's log (dmesg)")


def run_program(command: list[str], what: str, remedy: str) -> str:
    """Run a system program; returns its output. Raises Problem(drive_unavailable) with `what`, stderr and `remedy`."""
    done = _run(command)
    if done.returncode:
        said = last_line(done.stderr).rstrip(".") or f"{command[0]} ended with status {done.returncode}"
        raise Problem(Code.DRIVE_UNAVAILABLE, f"{what}: {said}; {remedy}")
    return done.stdout


def _run(command: list[str]) -> "subprocess.CompletedProcess[str]":
    program = shutil.which(command[0], path=default_search_path())
    if program is None:
        detail = f"{command[0]} is not installed; `apt-get install mount e2fsprogs xfsprogs` installs what drives need"
        raise Problem(Code.COMPONENT_MISSING, detail)
    environment = {"PATH": default_search_path(), "LC_ALL": "C"}
    return subprocess.run(
        [program, *command[1:]], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
