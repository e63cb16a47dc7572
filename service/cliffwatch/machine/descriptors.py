"""Open directories without following a symbolic link anywhere, and find the current name of a descriptor.

The owner of a directory above may put a link in the place of any part of a path, at any moment. openat2 (Linux 5.6)
refuses that in one step; where there is none, each part is opened relative to the one before.
"""

import ctypes
import errno
import os
from pathlib import Path

#: The number of openat2, the same on every architecture that Python's wheels are made for.
_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
#: On the way, it is enough to be allowed to pass.
_WAYPOINT = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: What the kernel puts after the name of what has none any more.
DELETED = " (deleted)"
#: An older kernel, or a filter of system calls, as containers have, that does not know of it.
_UNAVAILABLE = frozenset({errno.ENOSYS, errno.EPERM})


class _OpenHow(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


def open_directory(path: Path) -> int:
    """A descriptor of the directory at an absolute path without symbolic links.

    Raises OSError: ELOOP or ENOTDIR when a part of it is a link or something else by now. Never waits, not for a FIFO.
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
    """Current path of an open descriptor; ends in DELETED when it has none."""
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
