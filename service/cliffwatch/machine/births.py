"""Birth time of a file, which distinguishes it from a later file with the same inode number."""

import ctypes
import fcntl
import os
import struct
import time
from pathlib import Path

from cliffwatch.machine.backing import FileIdentity, opened
from cliffwatch.machine.relays import file_system_number

#: Magic number of ext2, ext3 and ext4: linux/magic.h.
_EXT = 0xEF53
_AT_EMPTY_PATH = 0x1000
_STATX_BTIME = 0x800
#: struct statx of linux/stat.h, 256 bytes: the mask of fields that are set, seconds and nanoseconds of the birth time.
_STATX = struct.Struct("=I76xqI164x")
#: The ioctl's result is an int, although its definition is _IOR('v', 1, long): ioctl_iflags(2).
_FS_IOC_GETVERSION = 0x80007601 | struct.calcsize("l") << 16


def birth_of(file: Path, identity: FileIdentity) -> str | None:
    """Birth time of a file, as `born 2026-09-21T13:46:40.123456789Z`.

    On a file system without birth times, the generation number of the inode, as `generation 12`. None if there is
    neither, or if the path does not lead to the file of that identity.
    """
    with opened(file, identity) as descriptor:
        if descriptor is None:
            return None
        return _birth_time(descriptor) or _generation(descriptor)


def described(file: Path, identity: FileIdentity) -> str:
    """Description of a file that stays the same after a reboot, as `inode 12 born 2026-…Z`."""
    return " ".join(filter(None, [f"inode {identity.inode}", birth_of(file, identity)]))


def described_at(path: Path) -> str | None:
    """Description of the file that has this name now, in the form of `described`; None when nothing is there."""
    try:
        identity = FileIdentity.of(path.lstat())
    except OSError:
        return None
    return described(path, identity)


def file_system_of(directory: Path) -> str | None:
    """Id of the ext2, ext3 or ext4 that the directory is on, as `file system 8f3a…`, from its UUID. None for others.

    The root of an ext4 always has inode 2 and a birth time in whole seconds, so the roots of two that were made in the
    same second look equal. Other file systems have finer birth times, and their id in statfs(2) may change with the
    device number.
    """
    if file_system_number(directory) != _EXT:
        return None
    try:
        return f"file system {os.statvfs(directory).f_fsid & (1 << 64) - 1:016x}"
    except OSError:
        return None


def _birth_time(descriptor: int) -> str | None:
    answer = ctypes.create_string_buffer(_STATX.size)
    statx = getattr(ctypes.CDLL(None), "statx", None)
    if statx is None or statx(descriptor, b"", _AT_EMPTY_PATH, _STATX_BTIME, answer) != 0:
        return None
    mask, seconds, nanoseconds = _STATX.unpack(answer.raw)
    # Some file systems return the beginning of 1970 for a time that they never wrote.
    if not mask & _STATX_BTIME or (seconds, nanoseconds) == (0, 0):
        return None
    return f"born {time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{nanoseconds:09d}Z"


def _generation(descriptor: int) -> str | None:
    try:
        answer = fcntl.ioctl(descriptor, _FS_IOC_GETVERSION, bytes(struct.calcsize("l")))
    except OSError:
        return None  # the file system has none
    return f"generation {int.from_bytes(answer[:4], 'little')}"
