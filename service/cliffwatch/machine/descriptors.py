"""Open directories without following a symbolic link anywhere, and find the current name of a descriptor.

The owner of a parent directory may replace any part of a path by a link, at any moment. openat2 (Linux 5.6) refuses
links in one step; without openat2, each part is opened relative to the previous one.
"""

import ctypes
import errno
import os
from pathlib import Path

#: System call number of openat2, the same on every architecture that Python's wheels are made for.
_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
#: Flags for directories on the way, which need search permission only.
_WAYPOINT = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Suffix that the kernel adds to the path of a deleted file.
DELETED = " (deleted)"
#: Errors if openat2 is missing in an older kernel, or blocked by a system call filter, as in containers.
_UNAVAILABLE = frozenset({errno.ENOSYS, errno.EPERM})


class _OpenHow(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


def open_directory(path: Path) -> int:
    """Open the directory at an absolute path without symbolic links; returns a descriptor.

    Raises OSError: ELOOP or ENOTDIR when a part of the path is now a link or no directory. Never blocks, not on a FIFO.
    """
    root = os.open("/", _WAYPOINT)
    try:
        return open_beneath(root, path.relative_to("/"))
    finally:
        os.close(root)


def open_beneath(parent: int, path: Path) -> int:
    """Open a directory below `parent` without following a symbolic link; the path cannot leave `parent`."""
    try:
        return _open_at_once(parent, path)
    except OSError as error:
        if error.errno not in _UNAVAILABLE:
            raise
        return _open_part_by_part(parent, path)


def name_of(descriptor: int) -> Path:
    """Current path of an open descriptor; ends in DELETED once the file is deleted."""
    return Path(f"/proc/self/fd/{descriptor}").readlink()


def _open_at_once(parent: int, path: Path) -> int:
    how = _OpenHow(_FLAGS, 0, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS)
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    descriptor = call(
        ctypes.c_long(_OPENAT2),
        ctypes.c_int(parent),
        ctypes.c_char_p(os.fsencode(path)),
        ctypes.byref(how),
        ctypes.c_size_t(ctypes.sizeof(how)),
    )
    if descriptor < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(path))
    return int(descriptor)


def _open_part_by_part(parent: int, path: Path) -> int:
    way = os.open(".", _WAYPOINT, dir_fd=parent)
    try:
        for part in path.parts:
            if part == "..":
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(path))
            above, way = way, os.open(part, _WAYPOINT, dir_fd=way)
            os.close(above)
        return os.open(".", _FLAGS, dir_fd=way)
    finally:
        os.close(way)
