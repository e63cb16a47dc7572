"""The drives of this machine as /sys/block describes them, and which of them are below a path.

Shapes of the attributes: Documentation/ABI/stable/sysfs-block, and admin-guide/md for arrays, of the Linux kernel.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.machine.mounts import Mount, mount_of, shown
from cliffwatch.machine.sysfs import (
    PROC,
    SYS,
    device_directory,
    device_number,
    disk_directory,
    kernel_name,
    major_minor_order,
    read_name,
    read_number,
    read_text,
)

SECTOR_BYTES = 512
#: Directories of udev's links to drives, named by model and serial or WWN, and by the place of the connection. A link
#: in them identifies a drive as a serial or WWN does.
BY_ID, BY_PATH = "/dev/disk/by-id/", "/dev/disk/by-path/"
#: Placeholder of a drive that was given no identity: `eui.0000000000000000`.
_ALL_ZERO = re.compile(r"([a-z0-9]+\.)?[0 :-]+")
#: Kernel names of the disks of virtual machines: virtio and Xen.
_VIRTUAL = re.compile(r"x?vd[a-z]")
#: Names of whole block devices that are not drives: memory, optical media, floppies.
_NOT_DRIVES = ("ram", "zram", "sr", "fd")


@dataclass(frozen=True, slots=True)
class Drive:
    """A whole block device. A field is None where the kernel does not report it.

    `name` is the kernel's, such as nvme0n1 or cciss/c0d0, as in /proc/diskstats and in the exporters' label `device`.
    `serial` and `wwn` are the maker's, `uuid` that of an md array or a dm device. `backing_file` is the path of the
    file behind a loop device as text: if the path is not UTF-8, this text does not lead to the file. `members` are the
    drives directly below an md array or a dm device, `raid_level` and `chunk_bytes` are md's. `queue_depth` is the
    number of requests that the block layer queues. `disk_sequence` is unique since boot, even when a name is reused.
    """

    name: str
    node: Path
    major_minor: str
    size_bytes: int
    logical_block_bytes: int
    discard: bool
    read_only: bool
    model: str | None = None
    firmware: str | None = None
    serial: str | None = None
    wwn: str | None = None
    uuid: str | None = None
    rotational: bool | None = None
    scheduler: str | None = None
    queue_depth: int | None = None
    disk_sequence: int | None = None
    backing_file: Path | None = None
    raid_level: str | None = None
    chunk_bytes: int | None = None
    members: tuple["Drive", ...] = ()

    @property
    def named_identities(self) -> dict[str, str]:
        """Identities that a user may name the drive by, keyed by kind, as in the confirmation `erase serial S3EV…`."""
        file = None if self.backing_file is None else str(self.backing_file)
        named = {"serial": self.serial, "wwn": self.wwn, "uuid": self.uuid, "backing file": file}
        return {word: value for word, value in named.items() if value}

    @property
    def identities(self) -> tuple[str, ...]:
        """All strings that name this drive and stay the same when kernel names change."""
        return tuple(self.named_identities.values())

    @property
    def kind(self) -> str:
        """Kind of the drive in words."""
        if self.backing_file is not None:
            return f"loop device over {self.backing_file}"
        if self.raid_level is not None:
            return self.raid_level
        if _VIRTUAL.match(self.name):
            return "virtual disk"
        return "hard disk" if self.rotational else "SSD"

    @property
    def leaves(self) -> tuple["Drive", ...]:
        """Drives at the bottom of the stack; this drive itself when nothing is below it."""
        if not self.members:
            return (self,)
        found = {leaf.major_minor: leaf for member in self.members for leaf in member.leaves}
        return tuple(found[key] for key in sorted(found, key=major_minor_order))


@dataclass(frozen=True, slots=True)
class Volume:
    """A mounted file system.

    `device` is the block device directly below it (a partition counts as its drive), `drives` the drives at the bottom;
    both are empty for tmpfs, overlay, network file systems and others that the kernel ties to no device.
    """

    mount_point: Path
    file_system: str
    mount_options: tuple[str, ...]
    source: str
    major_minor: str | None
    device: Drive | None
    drives: tuple[Drive, ...]

    @property
    def read_only(self) -> bool:
        return "ro" in self.mount_options


def list_drives(sys: Path = SYS) -> list[Drive]:
    """All whole disks, arrays and mapped devices, by name. No partitions, no hidden devices, no memory disks, optical
    media or floppies, nothing of size zero."""
    drives = []
    for entry in sorted((sys / "block").iterdir()):
        hidden = read_text(entry / "hidden") == "1"
        if not hidden and not _is_memory_or_medium(entry.name) and read_number(entry / "size"):
            drives.append(read_drive(entry.resolve(), sys))
    return drives


def drive_at(major_minor: str, sys: Path = SYS) -> Drive:
    """The drive that holds the device `major_minor`; for a partition, the whole drive. Raises OSError if it is gone."""
    return read_drive(disk_directory(device_directory(major_minor, sys)), sys)


def names_of(drives: Iterable[Drive]) -> dict[str, list[str]]:
    """Unambiguous names of each drive, by major:minor: its identities, then udev's links in BY_PATH."""
    listed = list(drives)
    counts = Counter(name for drive in listed for name in set(drive.identities))
    names = {drive.major_minor: [name for name in drive.identities if counts[name] == 1] for drive in listed}
    place = Path(BY_PATH)
    for link in sorted(place.iterdir()) if place.is_dir() else []:
        if (number := device_number(link)) in names:
            names[number].append(str(link))
    return names


def names_instead(drives: Iterable[Drive], sys: Path = SYS) -> str:
    """Part of an error message: the name to write instead for each of several drives that share an identity."""
    names = names_of(list_drives(sys))
    known = {drive.name: next(iter(names.get(drive.major_minor, ())), None) for drive in drives}
    if None in known.values():
        nameless = " and ".join(name for name, found in known.items() if found is None)
        place = BY_PATH.rstrip("/")
        return f"nothing names {nameless} alone, nor is there a link in {place}; name a directory on it instead"
    return f"write {' or '.join(f'device:{found} for {name}' for name, found in known.items())}"


def drives_by_identity(identity: str, sys: Path = SYS) -> list[Drive]:
    """All drives that `identity` names. May be several: NVMe namespaces share a serial, loop devices may share a file.

    Raises Problem(target_missing), with a list of the drives, when there is none.
    """
    drives = list_drives(sys)
    found = [drive for drive in drives if identity in drive.identities]
    node = _drive_at_path(identity, sys)
    if not found and node is not None and _is_by_id(identity):
        found = [node]
    if found:
        return found
    names_known = names_of(drives)
    known = [f"{drive.name}: {', '.join(names_known[drive.major_minor])}" for drive in drives if drive.identities]
    listing = "; ".join(known) or "no drive here has a serial, WWN, UUID or backing file"
    names = [
        name for name in (() if node is None else node.identities) if not name.startswith("/dev/") or _is_by_id(name)
    ]
    if names:
        message = f"kernel names such as {identity} move between drives; write device:{names[0]}, which stays"
    else:
        hint = "; write device: and a serial, WWN, UUID or backing file, which `cliffwatch drive list` shows"
        message = f"{identity!r} names no drive{hint}; drives: {listing}"
    fault = FieldFault("target.identity", message)
    raise Problem(Code.TARGET_MISSING, f"no drive is named {identity!r}", [fault])


def _is_by_id(identity: str) -> bool:
    """Whether `identity` is the path of a udev link directly in BY_ID or BY_PATH, which stays with a drive or with its
    connection. A longer path, as with `..`, could lead to any other node."""
    return str(Path(identity).parent) + "/" in (BY_ID, BY_PATH)


def _drive_at_path(identity: str, sys: Path) -> Drive | None:
    """The whole drive whose node the path leads to; None for a partition, a dangling link, or no path below /dev."""
    number = device_number(identity) if identity.startswith("/dev/") else None
    if number is None or (device_directory(number, sys) / "partition").exists():
        return None
    return drive_at(number, sys)


def drive_by_identity(identity: str, sys: Path = SYS) -> Drive:
    """The one drive that `identity` names. Raises Problem: target_missing, or target_unsafe when it names several."""
    found = drives_by_identity(identity, sys)
    if len(found) > 1:
        listing = " and ".join(drive.name for drive in found)
        message = f"{identity!r} names {listing}; {names_instead(found, sys)}"
        raise Problem(Code.TARGET_UNSAFE, "the identity names several drives", [FieldFault("target.identity", message)])
    return found[0]


def volume_of(path: Path, sys: Path = SYS, proc: Path = PROC) -> Volume:
    """The file system that `path` is on and the drives below it. Raises OSError when the path cannot be reached."""
    mount = mount_of(path, proc)
    devices = [drive_at(each, sys) for each in devices_of(mount, sys)]
    leaves = {leaf.major_minor: leaf for device in devices for leaf in device.leaves}
    return Volume(
        mount_point=mount.mount_point,
        file_system=mount.file_system,
        mount_options=mount.options,
        source=mount.source,
        major_minor=None if mount.is_anonymous else mount.major_minor,
        device=devices[0] if len(devices) == 1 else None,
        drives=tuple(leaves[key] for key in sorted(leaves, key=major_minor_order)),
    )


def devices_of(mount: Mount, sys: Path = SYS) -> list[str]:
    """Devices (major:minor) directly below a mounted file system: btrfs may have several, tmpfs has none."""
    if not mount.is_anonymous:
        return [mount.major_minor] if (sys / "dev" / "block" / mount.major_minor).exists() else []
    if mount.file_system != "btrfs":
        return []
    # A mounted btrfs lists its devices by kernel name; the mount names one of them.
    first = os.path.basename(os.path.realpath(mount.source))  # noqa: PTH119 the source need not be a path at all
    for filesystem in sorted((sys / "fs" / "btrfs").glob("*/devices")):
        names = sorted(entry.name for entry in filesystem.iterdir())
        if first in names:
            numbers = [read_text(filesystem / name / "dev") for name in names]
            return [number for number in numbers if number]
    return []


def member_differences(drives: Iterable[Drive]) -> list[str]:
    """Sentences on how the drives of one target differ in model, firmware or size: the slowest drive limits all."""
    attributes: dict[str, Callable[[Drive], object]] = {
        "model": lambda drive: drive.model,
        "firmware": lambda drive: drive.firmware,
        "size_bytes": lambda drive: drive.size_bytes,
    }
    members = list(drives)
    differences = []
    for name, read in attributes.items():
        if len({read(drive) for drive in members}) > 1:
            listing = ", ".join(f"{drive.name} {read(drive) or 'unknown'}" for drive in members)
            differences.append(f"the drives differ in {name}: {listing}")
    return differences


def read_drive(directory: Path, sys: Path = SYS) -> Drive:
    """Read a drive from its directory below /sys/devices."""
    queue, hardware = directory / "queue", directory / "device"
    name = kernel_name(directory)
    backing_file = read_name(directory / "loop" / "backing_file")
    rotational = read_text(queue / "rotational")
    return Drive(
        name=name,
        node=Path("/dev") / name,
        major_minor=read_text(directory / "dev") or "",
        size_bytes=(read_number(directory / "size") or 0) * SECTOR_BYTES,
        logical_block_bytes=read_number(queue / "logical_block_size") or SECTOR_BYTES,
        discard=bool(read_number(queue / "discard_max_bytes")),
        read_only=read_text(directory / "ro") != "0",
        model=read_text(hardware / "model"),
        firmware=read_text(hardware / "firmware_rev") or read_text(hardware / "rev"),
        serial=_identity(read_text(hardware / "serial") or read_text(directory / "serial") or _unit_serial(hardware)),
        wwn=_identity(read_text(directory / "wwid") or read_text(hardware / "wwid")),
        uuid=read_text(directory / "md" / "uuid") or read_text(directory / "dm" / "uuid"),
        # Virtual disks say of themselves that they rotate, whatever is below them.
        rotational=None if rotational is None or _VIRTUAL.match(name) else rotational == "1",
        scheduler=_scheduler(queue),
        queue_depth=read_number(queue / "nr_requests"),
        disk_sequence=read_number(directory / "diskseq"),
        backing_file=None if backing_file is None else Path(shown(backing_file)),
        raid_level=read_text(directory / "md" / "level"),
        chunk_bytes=read_number(directory / "md" / "chunk_size") or None,
        members=_members(directory, sys),
    )


def _identity(text: str | None) -> str | None:
    return None if text is None or _ALL_ZERO.fullmatch(text) else text


def _members(directory: Path, sys: Path) -> tuple[Drive, ...]:
    slaves = directory / "slaves"
    entries = sorted(slaves.iterdir()) if slaves.is_dir() else []
    # Two members may be partitions of one drive.
    directories = dict.fromkeys(disk_directory(entry.resolve()) for entry in entries)
    return tuple(read_drive(each, sys) for each in directories)


def _is_memory_or_medium(name: str) -> bool:
    return name.rstrip("0123456789") in _NOT_DRIVES


def _scheduler(queue: Path) -> str | None:
    # All available schedulers are listed, and the active one is in brackets: `none [mq-deadline] kyber`.
    listed = read_text(queue / "scheduler")
    if listed is None or "[" not in listed:
        return listed
    return listed.partition("[")[2].partition("]")[0]


def _unit_serial(hardware: Path) -> str | None:
    # SCSI has no attribute for the serial: page 0x80 of vital product data is a header of 4 bytes and the serial.
    try:
        page = (hardware / "vpd_pg80").read_bytes()
    except OSError:
        return None
    return page[4:].decode("ascii", "replace").strip("\0 ") or None
