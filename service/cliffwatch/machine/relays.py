"""File systems that relay files of another file system (overlay, FUSE, network), under a device and inode of their own.

The other file system may be on this machine, and nothing shows which of its files is relayed as which. Any file system
without a device counts as relaying, unless it is known to store its files itself. `modelled` finds the file that a
modelled drive relays.
"""

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.machine.mounts import Mount, foreign_mounts, read_mounts
from cliffwatch.machine.sysfs import PROC

#: File systems that store their files themselves, but have no device, or one that stat does not report: the kernel's
#: name, and the type in statfs (linux/magic.h).
_KEEPERS = {
    "tmpfs": 0x01021994,
    "devtmpfs": 0x01021994,
    "ramfs": 0x858458F6,
    "rootfs": 0x858458F6,
    "hugetlbfs": 0x958458F6,
    "ubifs": 0x24051905,
    "btrfs": 0x9123683E,
    "bcachefs": 0xCA451A4E,
    "zfs": 0x2FC12FC1,
}
_FUSE = "fuse"
_FUSE_NUMBER = 0x65735546
#: struct statfs is of 120 bytes, or fewer; the type of the file system is its first word.
_STATFS_BYTES = 256


@dataclass(frozen=True, slots=True)
class Relay:
    """Whether a file may be stored in another file system. `gives_inodes`: each name of it may have its own inode."""

    is_relayed: bool
    gives_inodes: bool = False


_KEPT = Relay(is_relayed=False)
#: For a file of which neither the file system type nor a mount is known.
UNKNOWN = Relay(is_relayed=True, gives_inodes=True)


def relay_by_mounts(device: int, proc: Path = PROC) -> Relay | None:
    """Whether files of a device (st_dev) may be stored in another file system; None if no mount has that device.

    None is the result for btrfs and for an overlay over several file systems, whose st_dev is in no list of mounts, and
    for a file system that was unmounted while in use. The file system itself is not accessed.
    """
    if os.major(device) != 0:
        # The file system has its own device, as the one below an overlay mostly has.
        return _KEPT
    mounts = [mount for mount in _all_mounts(proc) if mount.major_minor == f"0:{os.minor(device)}"]
    relaying = [mount for mount in mounts if _relays(mount)]
    if not mounts:
        return None
    return Relay(bool(relaying), any(mount.file_system.startswith(_FUSE) for mount in relaying))


def relay_by_type(file: Path | int) -> Relay:
    """Whether the file may be stored in another file system, by the type of the file system that it is on. `file` is a
    descriptor, or a path that leads to the file itself whatever is mounted, as /proc/PID/fd/N does."""
    number = file_system_number(file)
    if number is None:
        return UNKNOWN
    return Relay(number not in _KEEPERS.values(), gives_inodes=number == _FUSE_NUMBER)


def _all_mounts(proc: Path) -> list[Mount]:
    return [*read_mounts(proc), *(each.mount for each in foreign_mounts(proc))]


def _relays(mount: Mount) -> bool:
    return mount.file_system not in _KEEPERS


def file_system_number(file: Path | int) -> int | None:
    """Type of the file system that the file is on, as a number of linux/magic.h: f_type of statfs(2), which os.statvfs
    does not return. None if statfs fails."""
    answer = ctypes.create_string_buffer(_STATFS_BYTES)
    library = ctypes.CDLL(None)
    failed = library.fstatfs(file, answer) if isinstance(file, int) else library.statfs(os.fsencode(file), answer)
    # Some architectures have a word of four bytes there, the others one of eight, of which the type fills half.
    return None if failed else ctypes.c_long.from_buffer(answer).value & 0xFFFFFFFF
