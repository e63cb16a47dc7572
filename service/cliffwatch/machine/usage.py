"""Users of a block device: devices stacked on it, mounts, swap areas, and processes that write to it.

A use of a part is a use of the whole, so each check covers the device, its partitions, the holders of these, and so on
upwards.
"""

import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.machine.backing import FileIdentity, Loop, backing_by_name, read_loops
from cliffwatch.machine.inventory import devices_of
from cliffwatch.machine.modelled import DriveContents, server_descriptor
from cliffwatch.machine.mounts import Mount, foreign_mounts, lines_of, read_mounts, unescape
from cliffwatch.machine.relays import relay_by_mounts, relay_by_type
from cliffwatch.machine.sysfs import (
    PROC,
    SYS,
    device_directory,
    device_number,
    kernel_name,
    number_of,
    read_name,
    read_text,
)
from cliffwatch.machine.writing import DeviceWriter, writing_processes


@dataclass(frozen=True, slots=True)
class StackedDevice:
    """A device in a stack. `below` is the device that it lies on; None for the examined device and for those below."""

    name: str
    major_minor: str
    directory: Path
    below: str | None = None
    is_partition: bool = False

    @property
    def description(self) -> str:
        """Such as `md0 (raid1) on sda1`, `dm-0 (LVM-…) on sdb` or `loop2 (/data/disk.img) on sda1`."""
        attributes = ("md/level", "dm/uuid", "loop/backing_file")
        detail = next(filter(None, (read_text(self.directory / each) for each in attributes)), None)
        name = f"{self.name} ({detail})" if detail else self.name
        return f"{name} on {self.below}"


def layers_above(major_minor: str, sys: Path = SYS, *, beside: Collection[str] = ()) -> list[StackedDevice]:
    """The device itself, then all devices that lie on it, each once; without the devices (major:minor) in `beside`, and
    without those that lie only on them.

    Raises OSError when the device is gone.
    """
    directory = device_directory(major_minor, sys)
    loops = read_loops(sys)
    found = {major_minor: StackedDevice(kernel_name(directory), major_minor, directory)}
    waiting = [found[major_minor]]
    while waiting:
        below = waiting.pop(0)
        for layer in [*partitions(below), *holders(below), *_loops(below, loops), *_compressed(below, sys)]:
            if layer.major_minor not in found and layer.major_minor not in beside:
                found[layer.major_minor] = layer
                waiting.append(layer)
    return list(found.values())


def layers_below(major_minor: str, sys: Path = SYS) -> list[StackedDevice]:
    """Devices that an array or a mapped device is made of, down to the bottom, each once; where it is made of a
    partition, the partition and not its drive.

    Raises OSError when the device is gone.
    """
    directory = device_directory(major_minor, sys)
    found: dict[str, StackedDevice] = {}
    waiting = [StackedDevice(kernel_name(directory), major_minor, directory)]
    while waiting:
        above = waiting.pop(0)
        slaves = above.directory / "slaves"
        for entry in sorted(slaves.iterdir()) if slaves.is_dir() else []:
            part = entry.resolve()
            number = read_text(part / "dev") or ""
            if number not in found:
                is_partition = (part / "partition").exists()
                found[number] = StackedDevice(kernel_name(entry), number, part, is_partition=is_partition)
                waiting.append(found[number])
    return list(found.values())


def mount_points(layers: list[StackedDevice], sys: Path = SYS, proc: Path = PROC) -> list[tuple[StackedDevice, str]]:
    """Mounted devices and their mount points; a mount in another namespace is named together with a process there."""

    def mounted(mount: Mount) -> StackedDevice | None:
        numbers = devices_of(mount, sys)
        return next((layer for layer in layers if layer.major_minor in numbers), None)

    found = [(layer, str(mount.mount_point)) for mount in read_mounts(proc) if (layer := mounted(mount)) is not None]
    if found:
        return found
    # Most namespaces are copies of this one; one name of a mount is enough.
    return [(layer, str(each)) for each in foreign_mounts(proc) if (layer := mounted(each.mount)) is not None]


def mounts_of_files(proc: Path = PROC) -> list[str]:
    """Mount points, in any namespace, of file systems that the kernel reads from files without a loop device: EROFS,
    since Linux 6.12. mountinfo does not name the files that hold its data."""

    def lies_on_files(mount: Mount) -> bool:
        return mount.file_system == "erofs" and mount.is_anonymous

    found = [str(mount.mount_point) for mount in read_mounts(proc) if lies_on_files(mount)]
    return found or [str(each) for each in foreign_mounts(proc) if lies_on_files(each.mount)]


def swap_areas(layers: list[StackedDevice], files: Iterable[FileIdentity] = (), proc: Path = PROC) -> list[Path]:
    """Active swap areas that are one of the devices or files, as paths of device nodes or swap files."""
    numbers, wanted = {layer.major_minor for layer in layers}, set(files)
    rows = lines_of(proc / "swaps")[1:]
    found = []
    # Blanks and tabs in a name are escaped; other white space is not, so it must not split the line.
    for path in (Path(unescape(re.split("[ \t]", row, maxsplit=1)[0])) for row in rows):
        try:
            status = path.stat()
        except OSError:
            continue
        if number_of(status) in numbers or FileIdentity.of(status) in wanted:
            found.append(path)
    return found


def writers(layers: list[StackedDevice], proc: Path = PROC) -> list[DeviceWriter]:
    """Processes that have one of the devices open or mapped for writing, as far as this user may read /proc.

    This also finds what opening the device with O_EXCL does not: processes that opened it without O_EXCL (a virtual
    machine on the raw drive, a database, dd), and processes that send commands to the drive through a character
    device, as a virtual machine does with `scsi-generic`.
    """
    numbers = {layer.major_minor for layer in layers}
    passages = {number for layer in layers for number in _passages(layer)}
    # For a file that is registered with an io_uring, the kernel lists the last part of its name.
    names = frozenset(layer.name.rpartition("/")[2] for layer in layers)

    def is_wanted(status: os.stat_result, _: Path) -> bool:
        if stat.S_ISCHR(status.st_mode):
            return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}" in passages
        return number_of(status) in numbers

    return writing_processes(is_wanted, proc, names=names)


def _passages(layer: StackedDevice) -> list[str]:
    """Character devices through which commands reach the drive: sg and bsg of SCSI and SATA, `ng0n1` of nvme0n1."""
    hardware = layer.directory / "device"
    nodes = [*hardware.glob("scsi_generic/*/dev"), *hardware.glob("bsg/*/dev")]
    if layer.name.startswith("nvme"):
        nodes.append(hardware / layer.name.replace("nvme", "ng", 1) / "dev")
    return [number for node in nodes if (number := read_text(node)) is not None]


@dataclass(frozen=True, slots=True)
class FileWriters:
    """Processes that write to a file: `known` ones have it open or mapped for writing; `possible` ones have a file open
    or mapped for writing that may be the same file."""

    known: tuple[DeviceWriter, ...]
    possible: tuple[DeviceWriter, ...]


def file_writers(
    file: FileIdentity, size_bytes: int | None, is_relayed: bool, proc: Path = PROC, names: frozenset[str] = frozenset()
) -> FileWriters:
    """Processes that write to the file, under any name. `names` are its known names; `size_bytes` is None if unknown.

    A file on a relaying file system (module `relays`) has another device and inode where it is stored. So any file of
    the same size counts as possibly the same if it is on a relaying file system, or if `file` is (`is_relayed`). A
    process that writes to the content file of a modelled drive writes to the drive, unless it is the process that
    serves the drive.
    """
    contents = DriveContents.read(proc)
    content = contents.of(file)
    server = server_descriptor(content, proc) if content != file else None

    def is_it(status: os.stat_result, place: Path) -> bool:
        return contents.of(FileIdentity.of(status)) == content and not _is_of_process(place, server)

    def may_be_it(status: os.stat_result, place: Path) -> bool:
        if is_it(status, place):
            return True
        if _is_of_process(place, server) or not stat.S_ISREG(status.st_mode) or status.st_size != size_bytes:
            return False
        return is_relayed or _is_relayed(FileIdentity.of(status), place)

    def _is_relayed(written: FileIdentity, place: Path) -> bool:
        kept = contents.of(written)
        listed = relay_by_mounts(kept.device, proc)
        if listed is not None:
            return listed.is_relayed
        keeper = place if kept == written else server_descriptor(kept, proc)
        return keeper is None or relay_by_type(keeper).is_relayed

    files = {file, content}
    found = writing_processes(may_be_it, proc, files, names)
    known = writing_processes(is_it, proc, files, names) if found else []
    return FileWriters(tuple(known), tuple(each for each in found if each not in known))


def _is_of_process(place: Path, descriptor: Path | None) -> bool:
    """Whether the path `place` in /proc belongs to the process of `descriptor` (/proc/PID/fd/N)."""
    return descriptor is not None and place.is_relative_to(descriptor.parent.parent)


def partitions(layer: StackedDevice) -> Iterator[StackedDevice]:
    """Partitions of a whole drive, as the kernel knows them."""
    for entry in sorted(layer.directory.iterdir()):
        if (entry / "partition").exists():
            number = read_text(entry / "dev") or ""
            yield StackedDevice(kernel_name(entry), number, entry, layer.name, is_partition=True)


def holders(layer: StackedDevice) -> Iterator[StackedDevice]:
    """Holders of the device, stacked on it: arrays and mapped devices."""
    holders = layer.directory / "holders"
    for entry in sorted(holders.iterdir()) if holders.is_dir() else []:
        yield StackedDevice(kernel_name(entry), read_text(entry / "dev") or "", entry.resolve(), layer.name)


def _loops(layer: StackedDevice, loops: list[Loop]) -> Iterator[StackedDevice]:
    # A loop device does not claim the device that it lies on, and is not among its holders; nor is one whose file is on
    # a file system of the device.
    for loop in loops:
        # A name proves nothing, but if it leads to the device, the loop device is assumed to lie on it.
        backing = loop.backing or backing_by_name(loop.backing_file)
        if backing is not None and layer.major_minor in (backing.block_device, backing.file.major_minor):
            yield StackedDevice(loop.name, loop.major_minor, loop.directory, layer.name)


def _compressed(layer: StackedDevice, sys: Path) -> Iterator[StackedDevice]:
    # zram that writes idle pages back to a device claims that device, and is not among its holders either.
    for entry in sorted((sys / "block").glob("zram*")):
        device = read_name(entry / "backing_dev") or ""
        if device.startswith("/") and device_number(device) == layer.major_minor:
            yield StackedDevice(kernel_name(entry), read_text(entry / "dev") or "", entry.resolve(), layer.name)
