"""Processes that could write to a device or a file: any of their threads has it open for writing, or it is mapped."""

import ctypes
import os
import platform
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path

from cliffwatch.machine.backing import FileIdentity
from cliffwatch.machine.mounts import lines_of
from cliffwatch.machine.rings import ring_holds
from cliffwatch.machine.sysfs import PROC, read_text

#: Predicate: whether a file is wanted, by its status and a path that leads to the file itself.
Wanted = Callable[[os.stat_result, Path], bool]

#: System call number of kcmp, by machine; kcmp compares whether two threads share one table of open files.
_KCMP = {"x86_64": 312, "aarch64": 272}
_KCMP_FILES = 2


@dataclass(frozen=True, slots=True)
class DeviceWriter:
    """A process that has a device, or the file behind a loop device, open or mapped for writing."""

    process_id: int
    command: str

    def __str__(self) -> str:
        return f"process {self.process_id} ({self.command})"


def writing_processes(
    is_wanted: Wanted,
    proc: Path = PROC,
    files: Collection[FileIdentity] = (),
    names: frozenset[str] = frozenset(),
) -> list[DeviceWriter]:
    """Processes that have a wanted file or device open or mapped for writing, as far as this user may read /proc.
    `files` are the wanted files: a mapping that cannot be examined is compared with them by device and inode. `names`
    are the names of the wanted files or devices, for io_uring, which may list only names."""
    found = []
    for process in proc.iterdir():
        if process.name.isdecimal() and (
            _has_open(process, is_wanted, names) or _has_mapped(process, is_wanted, files)
        ):
            found.append(DeviceWriter(int(process.name), read_text(process / "comm") or "unknown"))
    return sorted(found, key=lambda writer: writer.process_id)


def _has_open(process: Path, is_wanted: Wanted, names: frozenset[str]) -> bool:
    descriptors = (each for holder in _holders(process) for each in _descriptors(holder))
    return any(_writes_to(each, is_wanted) or ring_holds(each, is_wanted, names) for each in descriptors)


def _holders(process: Path) -> list[Path]:
    """A process and those of its threads that may have open files of their own."""
    others = [task for task in _listed(process / "task") if task.name != process.name]
    return [process, *(task for task in others if not _share_files(int(process.name), int(task.name)))]


def _share_files(one: int, other: int) -> bool:
    """Whether two tasks share their open files (kcmp(2)); False if kcmp is not available."""
    number = _KCMP.get(platform.machine())
    if number is None:
        return False
    arguments = [ctypes.c_long(each) for each in (number, one, other, _KCMP_FILES, 0, 0)]
    return bool(ctypes.CDLL(None).syscall(*arguments) == 0)


def _listed(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        # The process ended, or belongs to another user.
        return []


def _descriptors(holder: Path) -> list[Path]:
    return _listed(holder / "fd")


def _writes_to(descriptor: Path, is_wanted: Wanted) -> bool:
    try:
        if not is_wanted(descriptor.stat(), descriptor):
            return False
        information = lines_of(descriptor.parent.parent / "fdinfo" / descriptor.name)
    except OSError:
        return False
    flags = next(line.split()[1] for line in information if line.startswith("flags:"))
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY


def _has_mapped(process: Path, is_wanted: Wanted, files: Collection[FileIdentity]) -> bool:
    """Whether the process has a wanted file or device in a shared mapping that is writable, or that it may make
    writable: proc_pid_maps(5)."""
    holder, mappings = _mappings(process)
    for line in mappings:
        addresses, access, _, device, inode = line.split(maxsplit=5)[:5]
        if inode == "0" or access[3] != "s":
            continue
        start, end = (int(address, 16) for address in addresses.split("-"))
        try:
            # On some file systems the device in maps is not that of stat, so the mapped file itself is examined.
            mapped = process / "map_files" / f"{start:x}-{end:x}"
            is_it = is_wanted(mapped.stat(), mapped)
        except OSError:
            major, minor = (int(part, 16) for part in device.split(":"))
            is_it = any((f"{major}:{minor}", int(inode)) == (each.major_minor, each.inode) for each in files)
        if is_it and (access[1] == "w" or _may_become_writable(holder, addresses)):
            return True
    return False


def _mappings(process: Path) -> tuple[Path, list[str]]:
    """First thread of a process with memory mappings, and these mappings: an ended thread has none."""
    for holder in (process, *_listed(process / "task")):
        try:
            lines = lines_of(holder / "maps")
        except OSError:
            continue
        if lines:
            return holder, lines
    return process, []


def _may_become_writable(holder: Path, addresses: str) -> bool:
    """Whether mprotect(2) may make a shared mapping writable: its file was opened for writing, even if closed by now.

    True also if the kernel does not report it.
    """
    try:
        lines = lines_of(holder / "smaps")
    except OSError:
        return True
    mapping = dropwhile(lambda line: not line.startswith(f"{addresses} "), lines)
    flags = next((line for line in mapping if line.startswith("VmFlags:")), None)
    return flags is None or "mw" in flags.split()
