"""Birth time of a file, which distinguishes it from a later file with the same inode number."""

import ctypes
import fcntl
import os
import struct
import time
from pathlib import Path

from cliffwatch.machine.backing import FileIdentity, opened
from cliffwatch.machine.relays import file_system_number

#: The same of all three: linux/magic.h.
_EXT = 0xEF53
_AT_EMPTY_PATH = 0x1000
_STATX_BTIME = 0x800
#: struct statx of linux/stat.h, 256 bytes: the mask of what is given, and the seconds and nanoseconds of the birth.
_STATX = struct.Struct("=I76xqI164x")
#: An int, whatever _IOR('v', 1, long) says: ioctl_iflags(2).
_FS_IOC_GETVERSION = 0x80007601 | struct.calcsize("l") << 16


def birth_of(file: Path, identity: FileIdentity) -> str | None:
    """The moment at which the file was made, as `born 2026-09-21T13:46:40.123456789Z`.

    Of a file system that keeps no such time, the number that it gives each use of an inode, as `generation 12`. None
    where there is neither, and where the file of that identity is not what the name leads to.
    """
    with opened(file, identity) as descriptor:
        if descriptor is None:
            return None
        return _birth_time(descriptor) or _generation(descriptor)


def described(file: Path, identity: FileIdentity) -> str:
    """A file in words that stay the same when the machine starts again, as `inode 12 born 2026-…Z`."""
    return " ".join(filter(None, [f"inode {identity.inode}", birth_of(file, identity)]))


def described_at(path: Path) -> str | None:
    """Description of the file that has this name now, as `described`; None when nothing is there."""
    try:
        identity = FileIdentity.of(path.lstat())
    except OSError:
        return None
    return described(path, identity)


def file_system_of(directory: Path) -> str | None:
    """Which ext2, ext3 or ext4 the directory is on, as `file system 8f3a…`: what its UUID comes to. None for others.

    The root of an ext4 always has inode 2, and its birth is a whole second, so that two that were made in one second
    have that in common. Elsewhere births are finer, and the number that statfs(2) gives may change with the device's.
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
    # Some give the beginning of 1970 for a time that they never wrote.
    if not mask & _STATX_BTIME or (seconds, nanoseconds) == (0, 0):
        return None
    return f"born {time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{nanoseconds:09d}Z"


def _generation(descriptor: int) -> str | None:
    try:
        answer = fcntl.ioctl(descriptor, _FS_IOC_GETVERSION, bytes(struct.calcsize("l")))
    except OSError:
        return None  # the file system has none
    return f"generation {int.from_bytes(answer[:4], 'little')}"
