"""Files behind loop devices, identified by device and inode instead of by name.

A hard link, a bind mount, a rename or another mount namespace gives one file several names, and the kernel reports only
the one under which it was attached. Device and inode are the same under every name.
"""

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.machine.sysfs import SYS, number_of, read_name, read_number, read_text

_LOOP_GET_STATUS64 = 0x4C05
#: struct loop_info64 of linux/loop.h: device, inode and rdevice of the file are the first three of its 232 bytes.
_LOOP_INFO = struct.Struct("=QQQ208x")
#: struct flock of fcntl.h: type, whence, start, length, process id.
_FLOCK = struct.Struct("hhqqi4x")
_SECTOR_BYTES = 512


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """Identity of a file on this machine, as stat gives it: st_dev and st_ino."""

    device: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> "FileIdentity":
        return cls(status.st_dev, status.st_ino)

    @property
    def major_minor(self) -> str:
        """Device number of the file's file system; for most file systems that of its block device."""
        return f"{os.major(self.device)}:{os.minor(self.device)}"


@dataclass(frozen=True, slots=True)
class Backing:
    """Backing of a loop device: a file, or a block device if `block_device` (its major:minor) is given."""

    file: FileIdentity
    block_device: str | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop device in use. `backing` is None if there is no device node to query it by, or if this user may neither
    query it nor reach the file.

    `offset_bytes`: where in the file the device begins. `end_bytes`: where in the file it ends, if that is the file's
    own end; None if it ends earlier, as it does after the file has grown, or if the file cannot be examined.
    """

    name: str
    major_minor: str
    directory: Path
    backing_file: Path
    backing: Backing | None
    offset_bytes: int
    end_bytes: int | None


def read_loops(sys: Path = SYS) -> list[Loop]:
    """All loop devices that are attached to something, by name."""
    found = []
    for entry in sorted((sys / "block").glob("loop*")):
        file = read_name(entry / "loop" / "backing_file")
        if file is not None:
            number = read_text(entry / "dev") or ""
            backing = _backing(entry.name, number, file)
            end_bytes = _end_bytes(entry, Path(file), backing)
            offset_bytes = read_number(entry / "loop" / "offset") or 0
            found.append(Loop(entry.name, number, entry.resolve(), Path(file), backing, offset_bytes, end_bytes))
    return found


@contextmanager
def opened(file: Path, identity: FileIdentity) -> Iterator[int | None]:
    """Open a file for reading; gives None if the path leads to a file of another identity, or cannot be opened."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        yield None
        return
    try:
        yield descriptor if FileIdentity.of(os.fstat(descriptor)) == identity else None
    finally:
        os.close(descriptor)


def is_locked_by_another(file: Path, identity: FileIdentity) -> bool:
    """Whether another process has a lock on a byte of the file, in any namespace; False if it cannot be opened.

    QEMU locks its open images in this way, and processes of other containers are not in this container's /proc.
    """
    with opened(file, identity) as descriptor:
        if descriptor is None:
            return False
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        try:
            answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked)
        except OSError:
            return False
    return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)


def _end_bytes(entry: Path, file: Path, backing: Backing | None) -> int | None:
    sectors, offset = read_number(entry / "size"), read_number(entry / "loop" / "offset")
    if sectors is None or offset is None or read_number(entry / "loop" / "sizelimit") != 0:
        return None
    end_bytes = offset + sectors * _SECTOR_BYTES
    try:
        status = file.stat()
    except OSError:
        return None
    # A device keeps the size that its file had when it was attached, without a partial sector at the end.
    is_whole = status.st_size - status.st_size % _SECTOR_BYTES == end_bytes
    return end_bytes if is_whole and backing is not None and FileIdentity.of(status) == backing.file else None


def _backing(name: str, major_minor: str, file: str) -> Backing | None:
    """Backing as the kernel reports it; if this user may not open the device, by the file's name. None if unknown."""
    try:
        descriptor = os.open(Path("/dev") / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except PermissionError:
        return backing_by_name(Path(file))
    except OSError:
        return None
    try:
        if number_of(os.fstat(descriptor)) != major_minor:
            return None
        device, inode, block_device = _LOOP_INFO.unpack(fcntl.ioctl(descriptor, _LOOP_GET_STATUS64, bytes(232)))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    number = f"{os.major(block_device)}:{os.minor(block_device)}" if block_device else None
    return Backing(FileIdentity(device, inode), number)


def backing_by_name(file: Path) -> Backing | None:
    """Backing of a loop device by its file's name, which may lead to another file by now; None if there is no file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return Backing(FileIdentity.of(status), number_of(status))
