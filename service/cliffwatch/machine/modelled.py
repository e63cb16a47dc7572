"""Mounts that serve modelled drives, and the files that hold these drives' content.

A modelled drive is the only file of a FUSE mount, and its blocks are those of the file that `cliffwatch-drive mount`
was given as `--backing`: a write to one of the two overwrites the other. The mount's source names the backing file,
as `cliffwatch-drive:MAJOR:MINOR:INODE`, and the serving process holds a lock on it.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.base.programs import DRIVE
from cliffwatch.machine.backing import FileIdentity
from cliffwatch.machine.mounts import Mount, foreign_mounts, lines_of, read_mounts
from cliffwatch.machine.sysfs import PROC

_SOURCE = re.compile(rf"{DRIVE}(?::([0-9]{{1,10}}):([0-9]{{1,10}}):([0-9]{{1,20}}))?")
#: Option of a FUSE mount in mountinfo. Any user may mount with any source, but such a mount has that user's id here, or
#: belongs to a user namespace, and processes outside of that cannot access its files.
_MOUNTED_BY_ROOT = "user_id=0"
_FUSE = "fuse"


def is_modelled_drive(mount: Mount) -> bool:
    """Whether the mount serves a modelled drive, and was made by root."""
    is_named_so = mount.file_system == _FUSE and _SOURCE.fullmatch(mount.source) is not None
    return is_named_so and _MOUNTED_BY_ROOT in mount.options


@dataclass(frozen=True, slots=True)
class DriveContents:
    """The files that hold the content of the modelled drives, by the device (st_dev) of the mount that serves each."""

    by_device: dict[int, FileIdentity]

    @classmethod
    def read(cls, proc: Path = PROC) -> "DriveContents":
        """Content files of the drives that are mounted in any mount namespace, as far as this user may read these.

        A drive whose mount does not name its content file (an older program serves it) is left out.
        """
        found = {}
        for mount in [*read_mounts(proc), *(each.mount for each in foreign_mounts(proc))]:
            said = _SOURCE.fullmatch(mount.source)
            if is_modelled_drive(mount) and said is not None and said[1] is not None:
                device = os.makedev(*(int(each) for each in mount.major_minor.split(":")))
                found[device] = FileIdentity(os.makedev(int(said[1]), int(said[2])), int(said[3]))
        return cls(found)

    def of(self, file: FileIdentity) -> FileIdentity:
        """File that holds the blocks of `file`: the content file of a modelled drive, else `file` itself."""
        passed: set[FileIdentity] = set()
        while file.device in self.by_device and file not in passed:
            passed.add(file)
            file = self.by_device[file.device]
        return file


def server_descriptor(content: FileIdentity, proc: Path = PROC) -> Path | None:
    """The serving process's descriptor of a drive's content file, as /proc/PID/fd/N: the one that holds the lock. None
    if this user cannot see it."""
    for descriptor in proc.glob("[0-9]*/fd/*"):
        try:
            if FileIdentity.of(descriptor.stat()) == content and _is_locked_through(descriptor):
                return descriptor
        except OSError:
            # The process ended, or belongs to another user.
            continue
    return None


def content_file(content: FileIdentity, proc: Path = PROC) -> Path | None:
    """Path to a drive's content file through /proc/PID/root of the serving process. None if this user cannot see the
    process, or the file has no name."""
    descriptor = server_descriptor(content, proc)
    if descriptor is None:
        return None
    root = descriptor.parent.parent / "root"
    try:
        path = root / descriptor.readlink().relative_to("/")
        return path if FileIdentity.of(path.lstat()) == content else None
    except OSError:
        return None


def _is_locked_through(descriptor: Path) -> bool:
    """Whether an exclusive flock(2) is held through the descriptor: proc_pid_fdinfo(5)."""
    information = lines_of(descriptor.parent.parent / "fdinfo" / descriptor.name)
    return any(line.startswith("lock:") and {"FLOCK", "WRITE"} <= set(line.split()) for line in information)
