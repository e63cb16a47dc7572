"""File systems that relay files of another one (overlay, FUSE, network), under a device and inode of their own.

An overlay, FUSE and a network's file system pass on what is kept elsewhere, maybe on this machine, and nothing says of
which file one is. So does any file system without a device that is not known to keep its files itself. Which file a
modelled drive's is, `modelled` knows.
"""

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.machine.mounts import Mount, foreign_mounts, read_mounts
from cliffwatch.machine.sysfs import PROC

#: File systems that have no device, or one that stat does not give, and whose files are their own: as the kernel calls
#: them, and the number that statfs gives them (linux/magic.h).
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
    """How far a file may belong to another file system. `gives_inodes`: each name may have an inode of its own."""

    is_relayed: bool
    gives_inodes: bool = False


_KEPT = Relay(is_relayed=False)
#: Of what can be asked neither by its file system nor by a mount.
UNKNOWN = Relay(is_relayed=True, gives_inodes=True)


def relay_by_mounts(device: int, proc: Path = PROC) -> Relay | None:
    """Whether the files of a device, as st_dev gives it, may be others' ones; None where no mount is of that device.

    None are, for one, an overlay over several file systems and btrfs, which give numbers that are in no list, and what
    was unmounted while in use. The file system itself is not asked.
    """
    if os.major(device) != 0:
        # On a device of its own, as the file system below an overlay mostly is.
        return _KEPT
    mounts = [mount for mount in _all_mounts(proc) if mount.major_minor == f"0:{os.minor(device)}"]
    relaying = [mount for mount in mounts if _relays(mount)]
    if not mounts:
        return None
    return Relay(bool(relaying), any(mount.file_system.startswith(_FUSE) for mount in relaying))


def relay_by_type(file: Path | int) -> Relay:
    """Whether the file may be another one's, by what kind its file system is of. `file` is a descriptor, or a path that
    leads to the file itself whatever is mounted, as /proc/PID/fd/N does."""
    number = file_system_number(file)
    if number is None:
        return UNKNOWN
    return Relay(number not in _KEEPERS.values(), gives_inodes=number == _FUSE_NUMBER)


def _all_mounts(proc: Path) -> list[Mount]:
    return [*read_mounts(proc), *(each.mount for each in foreign_mounts(proc))]


def _relays(mount: Mount) -> bool:
    return mount.file_system not in _KEEPERS


def file_system_number(file: Path | int) -> int | None:
    """Which kind of file system the file is on, by the number that linux/magic.h gives it: f_type of statfs(2), which
    os.statvfs does not give. None where it cannot be asked."""
    answer = ctypes.create_string_buffer(_STATFS_BYTES)
    library = ctypes.CDLL(None)
    failed = library.fstatfs(file, answer) if isinstance(file, int) else library.statfs(os.fsencode(file), answer)
    # Some architectures have a word of four bytes there, the others one of eight, of which the type fills half.
    return None if failed else ctypes.c_long.from_buffer(answer).value & 0xFFFFFFFF
