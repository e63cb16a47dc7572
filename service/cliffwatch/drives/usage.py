"""Who uses a block device: what is stacked on it, mounted from it, swapped to it, and which process writes to it.

A use of a part is a use of the whole, so each question is asked of the device, its partitions, whatever holds one of
these, and so on upwards.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.drives.backing import FileIdentity, Loop, read_loops
from cliffwatch.drives.inventory import devices_of
from cliffwatch.drives.mounts import foreign_mounts, read_mounts, unescape
from cliffwatch.drives.sysfs import PROC, SYS, device_directory, device_number, number_of, read_text


@dataclass(frozen=True, slots=True)
class Layer:
    """A device in the stack. `below` is the one it lies on; None for the device asked about."""

    name: str
    major_minor: str
    directory: Path
    below: str | None = None
    is_partition: bool = False

    @property
    def description(self) -> str:
        """Such as `md0 (raid1) on sda1` or `dm-0 (LVM-…) on sdb`."""
        detail = read_text(self.directory / "md" / "level") or read_text(self.directory / "dm" / "uuid")
        name = f"{self.name} ({detail})" if detail else self.name
        return f"{name} on {self.below}"


@dataclass(frozen=True, slots=True)
class Writer:
    """A process that has a device, or the file behind a loop device, open for writing or mapped so."""

    process_id: int
    command: str

    def __str__(self) -> str:
        return f"process {self.process_id} ({self.command})"


def layers_above(major_minor: str, sys: Path = SYS) -> list[Layer]:
    """The device itself, then everything that lies on it, each once. Raises OSError when the device is gone."""
    directory = device_directory(major_minor, sys)
    loops = read_loops(sys)
    found = {major_minor: Layer(directory.name, major_minor, directory)}
    waiting = [found[major_minor]]
    while waiting:
        below = waiting.pop(0)
        for layer in [*_partitions(below), *_holders(below), *_loops(below, loops), *_compressed(below, sys)]:
            if layer.major_minor not in found:
                found[layer.major_minor] = layer
                waiting.append(layer)
    return list(found.values())


def mount_points(layers: list[Layer], sys: Path = SYS, proc: Path = PROC) -> list[str]:
    """Where one of the devices is mounted; for a mount that this process does not see, with one that does."""
    numbers = {layer.major_minor for layer in layers}
    found = [str(mount.mount_point) for mount in read_mounts(proc) if numbers.intersection(devices_of(mount, sys))]
    # Most namespaces are copies of this one; one name of a mount is enough.
    elsewhere = [each for each in foreign_mounts(proc) if numbers.intersection(devices_of(each.mount, sys))]
    return found or [str(each) for each in elsewhere]


def swap_areas(layers: list[Layer], files: Iterable[FileIdentity] = (), proc: Path = PROC) -> list[Path]:
    """The nodes and files that are swapped to and are one of the devices or files."""
    numbers, wanted = {layer.major_minor for layer in layers}, set(files)
    rows = (proc / "swaps").read_text().splitlines()[1:]
    found = []
    for path in (Path(unescape(row.split()[0])) for row in rows):
        try:
            status = path.stat()
        except OSError:
            continue
        if number_of(status) in numbers or FileIdentity.of(status) in wanted:
            found.append(path)
    return found


def writers(layers: list[Layer], proc: Path = PROC) -> list[Writer]:
    """Processes that have one of the devices open for writing, as far as this user may look.

    An exclusive open does not see those that opened without one: a virtual machine on the raw drive, a database, dd.
    """
    numbers = {layer.major_minor for layer in layers}
    return _writers(proc, lambda status: number_of(status) in numbers)


def file_writers(file: FileIdentity, proc: Path = PROC) -> list[Writer]:
    """Processes that have the file open for writing, or mapped for it, under whichever name."""
    return _writers(proc, lambda status: FileIdentity.of(status) == file, file)


def _writers(
    proc: Path, is_wanted: Callable[[os.stat_result], bool], mapped: FileIdentity | None = None
) -> list[Writer]:
    found = []
    for process in proc.iterdir():
        if not process.name.isdecimal():
            continue
        if any(_writes_to(each, is_wanted) for each in _descriptors(process)) or (mapped and _maps(process, mapped)):
            found.append(Writer(int(process.name), read_text(process / "comm") or "unknown"))
    return sorted(found, key=lambda writer: writer.process_id)


def _partitions(layer: Layer) -> Iterator[Layer]:
    for entry in sorted(layer.directory.iterdir()):
        if (entry / "partition").exists():
            yield Layer(entry.name, read_text(entry / "dev") or "", entry, layer.name, is_partition=True)


def _holders(layer: Layer) -> Iterator[Layer]:
    holders = layer.directory / "holders"
    for entry in sorted(holders.iterdir()) if holders.is_dir() else []:
        yield Layer(entry.name, read_text(entry / "dev") or "", entry.resolve(), layer.name)


def _loops(layer: Layer, loops: list[Loop]) -> Iterator[Layer]:
    # A loop device does not claim the device that it lies on, and is not among its holders; nor is one whose file is on
    # a file system of the device.
    for loop in loops:
        if loop.backing is not None and layer.major_minor in (loop.backing.block_device, loop.backing.file.major_minor):
            yield Layer(loop.name, loop.major_minor, loop.directory, layer.name)


def _compressed(layer: Layer, sys: Path) -> Iterator[Layer]:
    # Compressed memory that writes back what is idle claims the device and is not among its holders either.
    for entry in sorted((sys / "block").glob("zram*")):
        device = read_text(entry / "backing_dev") or ""
        if device.startswith("/") and device_number(device) == layer.major_minor:
            yield Layer(entry.name, read_text(entry / "dev") or "", entry.resolve(), layer.name)


def _descriptors(process: Path) -> list[Path]:
    try:
        return list((process / "fd").iterdir())
    except OSError:
        # It ended, or belongs to another user.
        return []


def _writes_to(descriptor: Path, is_wanted: Callable[[os.stat_result], bool]) -> bool:
    try:
        if not is_wanted(descriptor.stat()):
            return False
        information = (descriptor.parent.parent / "fdinfo" / descriptor.name).read_text()
    except OSError:
        return False
    flags = next(line.split()[1] for line in information.splitlines() if line.startswith("flags:"))
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY


def _maps(process: Path, file: FileIdentity) -> bool:
    """Whether the process has the file mapped so that what it writes there reaches the file: proc_pid_maps(5)."""
    try:
        lines = (process / "maps").read_text(errors="replace").splitlines()
    except OSError:
        return False
    for line in lines:
        addresses, access, _, device, inode = line.split(maxsplit=5)[:5]
        if int(inode) != file.inode or access[1] != "w" or access[3] != "s":
            continue
        start, end = (int(address, 16) for address in addresses.split("-"))
        try:
            # The device that is printed is not that of stat on every file system.
            is_it = FileIdentity.of((process / "map_files" / f"{start:x}-{end:x}").stat()) == file
        except OSError:
            major, minor = (int(part, 16) for part in device.split(":"))
            is_it = f"{major}:{minor}" == file.major_minor
        if is_it:
            return True
    return False
