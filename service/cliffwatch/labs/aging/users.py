"""Who keeps a drive from being taken down: processes, mounts that only others see, and what lies on it."""

import os
from collections.abc import Iterator
from pathlib import Path

from cliffwatch.machine.mounts import foreign_mounts
from cliffwatch.machine.sysfs import PROC, SYS, device_number, number_of, read_text


def users_of(path: Path) -> list[str]:
    """Processes that have something at or below `path` open, or work there."""
    found = []
    for process in _processes():
        if any(each == path or path in each.parents for each in _opened(process)):
            found.append(_name(process))
    return found


def process_ids_of(path: Path) -> list[int]:
    """Processes that have the very file `path` open."""
    return [int(process.name) for process in _processes() if path in _opened(process)]


def users_of_device(node: Path) -> list[str]:
    """What keeps a block device from being detached: processes that have it or a file on it open, in whichever mount
    namespace, what is stacked on it, and mounts of it that this process does not see."""
    number = device_number(node)
    if number is None:
        return []
    holders = sorted((SYS / "dev" / "block" / number / "holders").glob("*"))
    return [
        *(_name(process) for process in _processes() if number in _devices(process)),
        *(f"{holder.name}, which lies on it" for holder in holders),
        *(f"what is mounted at {each}" for each in foreign_mounts(PROC) if each.mount.major_minor == number),
    ]


def mounts_elsewhere(directory: Path, number: str | None = None) -> list[str]:
    """Mounts at the same place, or of the device `number`, that only processes of other namespaces see.

    A namespace begins as a copy of all mounts, and what was unmounted here lives on there.
    """
    found = foreign_mounts(PROC)
    return [str(each) for each in found if each.mount.mount_point == directory or each.mount.major_minor == number]


def _processes() -> list[Path]:
    return sorted(PROC.glob("[0-9]*"), key=lambda entry: int(entry.name))


def _name(process: Path) -> str:
    return f"process {process.name} ({read_text(process / 'comm') or 'unknown'})"


def _links(process: Path) -> list[Path]:
    try:
        return [process / "cwd", process / "root", *(process / "fd").iterdir()]
    except OSError:
        # It ended, or is a kernel thread.
        return []


def _opened(process: Path) -> Iterator[Path]:
    for link in _links(process):
        try:
            yield link.readlink()
        except OSError:
            continue


def _devices(process: Path) -> Iterator[str]:
    """The block devices that the process has open, and those that what it has open is on."""
    for link in _links(process):
        try:
            status = link.stat()
        except OSError:
            continue
        yield number_of(status) or f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
