"""Who uses a block device: what is stacked on it, mounted from it, swapped to it, and which process writes to it.

A use of a part is a use of the whole, so each question is asked of the device, its partitions, whatever holds one of
these, and so on upwards.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.drives.inventory import devices_of
from cliffwatch.drives.mounts import read_mounts, unescape
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
    """A process that has the device open for writing."""

    process_id: int
    command: str


def layers_above(major_minor: str, sys: Path = SYS) -> list[Layer]:
    """The device itself, then everything that lies on it, each once. Raises OSError when the device is gone."""
    directory = device_directory(major_minor, sys)
    found = {major_minor: Layer(directory.name, major_minor, directory)}
    waiting = [found[major_minor]]
    while waiting:
        below = waiting.pop(0)
        for layer in [*_partitions(below), *_holders(below), *_loops(below, sys)]:
            if layer.major_minor not in found:
                found[layer.major_minor] = layer
                waiting.append(layer)
    return list(found.values())


def mount_points(layers: list[Layer], sys: Path = SYS, proc: Path = PROC) -> list[Path]:
    """Where one of the devices is mounted."""
    numbers = {layer.major_minor for layer in layers}
    return [mount.mount_point for mount in read_mounts(proc) if numbers.intersection(devices_of(mount, sys))]


def swap_areas(layers: list[Layer], proc: Path = PROC) -> list[Path]:
    """The nodes that are swapped to and belong to one of the devices."""
    numbers = {layer.major_minor for layer in layers}
    rows = (proc / "swaps").read_text().splitlines()[1:]
    paths = [Path(unescape(row.split()[0])) for row in rows]
    return [path for path in paths if device_number(path) in numbers]


def writers(layers: list[Layer], proc: Path = PROC) -> list[Writer]:
    """Processes that have one of the devices open for writing, as far as this user may look.

    An exclusive open does not see those that opened without one: a virtual machine on the raw drive, a database, dd.
    """
    numbers = {layer.major_minor for layer in layers}
    found = []
    for process in proc.iterdir():
        if process.name.isdecimal() and any(_writes_to(each, numbers) for each in _descriptors(process)):
            command = read_text(process / "comm") or "unknown"
            found.append(Writer(int(process.name), command))
    return sorted(found, key=lambda writer: writer.process_id)


def _partitions(layer: Layer) -> Iterator[Layer]:
    for entry in sorted(layer.directory.iterdir()):
        if (entry / "partition").exists():
            yield Layer(entry.name, read_text(entry / "dev") or "", entry, layer.name, is_partition=True)


def _holders(layer: Layer) -> Iterator[Layer]:
    holders = layer.directory / "holders"
    for entry in sorted(holders.iterdir()) if holders.is_dir() else []:
        yield Layer(entry.name, read_text(entry / "dev") or "", entry.resolve(), layer.name)


def _loops(layer: Layer, sys: Path) -> Iterator[Layer]:
    # A loop device does not claim the device that it lies on, and is not among its holders.
    for entry in sorted((sys / "block").glob("loop*")):
        backing_file = read_text(entry / "loop" / "backing_file")
        if backing_file is not None and device_number(backing_file) == layer.major_minor:
            yield Layer(entry.name, read_text(entry / "dev") or "", entry.resolve(), layer.name)


def _descriptors(process: Path) -> list[Path]:
    try:
        return list((process / "fd").iterdir())
    except OSError:
        # It ended, or belongs to another user.
        return []


def _writes_to(descriptor: Path, numbers: set[str]) -> bool:
    try:
        if number_of(descriptor.stat()) not in numbers:
            return False
        information = (descriptor.parent.parent / "fdinfo" / descriptor.name).read_text()
    except OSError:
        return False
    flags = next(line.split()[1] for line in information.splitlines() if line.startswith("flags:"))
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY
