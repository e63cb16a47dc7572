"""Remove an aging drive's files: only those with names that attaching creates. Of symbolic links, only
`content` is followed."""

import os
import re
import stat
from pathlib import Path

from cliffwatch.base.errors import Code, Problem
from cliffwatch.labs.aging.directories import DriveDirectory
from cliffwatch.labs.aging.machine import mounts_below, unmount_command
from cliffwatch.machine.backing import FileIdentity, read_loops

#: Files of a drive besides its content. The description and `turn` go last: they mark the directory as a drive's.
_FILES = ("content.state", "content.state-new", "ready.json", "output.log", "output.old", "alive", "profile.yaml")
_DESCRIPTION, _TURN = "drive.json", "turn"
#: Temporary files of a process that was killed while it replaced a file.
_UNFINISHED = re.compile(r"\.(?:drive\.json|profile\.yaml)\.\d+")


def remove(place: DriveDirectory) -> list[str]:
    """Remove a drive's files; take the drive down first. Returns a sentence on what is left in its directory, and why.

    Raises Problem, and then removes nothing: conflict if something is mounted in the directory or a loop device is
    attached to the content, drive_invalid if the content is a link to a file that the drive did not make.
    """
    if mounts := mounts_below(place.directory):
        points = ", ".join(str(mount.mount_point) for mount in mounts)
        detail = f"the drive {place.name} cannot be deleted: something else is mounted at {points}"
        raise Problem(Code.CONFLICT, f"{detail}; unmount it with: {unmount_command(mounts)}, then delete again")
    check_content(place)
    _remove_content(place)
    unfinished = [entry.name for entry in place.directory.iterdir() if _UNFINISHED.fullmatch(entry.name)]
    for name in (*unfinished, *_FILES, _DESCRIPTION, _TURN):
        _unlink_file(place.directory / name)
    for directory in (place.files, place.flash, place.directory):
        # Not recursively: files that are still in there were not made by attaching the drive.
        if not directory.is_symlink() and directory.is_dir() and not any(directory.iterdir()):
            directory.rmdir()
    if not place.directory.exists():
        return []
    names = ", ".join(sorted(entry.name for entry in place.directory.iterdir()))
    return [f"left {place.directory}: the drive did not make what is in it ({names})"]


def check_content(place: DriveDirectory) -> None:
    """Check that the content is the drive's own file, and that no loop device is attached to it.

    Raises Problem(drive_invalid) if it is a link to a file that the drive did not make, and Problem(conflict) if a loop
    device is attached: the content would be written under two names. The drive of a drill has its content in /dev/shm,
    which is empty after a reboot, so another user can create a file with the content's name there.
    """
    target = _content_link(place)
    if target is not None and (reason := _why_foreign_file(target)):
        detail = f"{target}, which {place.content} is a link to, {reason}, so that it is not the content of this drive"
        raise Problem(Code.DRIVE_INVALID, f"{detail}; remove the link {place.content}, then try again")
    if not place.content.exists():
        return
    content = FileIdentity.of(place.content.stat())
    over = [f"/dev/{loop.name}" for loop in read_loops() if loop.backing is not None and loop.backing.file == content]
    if over:
        names = " and ".join(over)
        detail = f"the content of the drive {place.name}, {place.content}, is attached as {names} too"
        raise Problem(Code.CONFLICT, f"{detail}; unmount what is on it, then: losetup --detach {' '.join(over)}")


def _content_link(place: DriveDirectory) -> Path | None:
    return place.directory / place.content.readlink() if place.content.is_symlink() else None


def _why_foreign_file(path: Path) -> str | None:
    """Why the file cannot be one that a drive of this user made (type, owner, hard links or mode); None if it can be,
    or is missing. A path through a symbolic link is rejected, too, unless root or this user owns the link, as where a
    directory was moved."""
    for part in reversed(path.parents):
        if part.is_symlink() and part.lstat().st_uid not in (0, os.geteuid()):
            return f"is reached through {part}, a symbolic link of the user {part.lstat().st_uid}"
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        return "is a symbolic link"
    if not stat.S_ISREG(status.st_mode):
        return "is not a regular file"
    if status.st_uid != os.geteuid():
        return f"belongs to the user {status.st_uid}"
    if status.st_nlink != 1:
        return f"has {status.st_nlink} names (hard links)"
    if status.st_mode & 0o077:
        return f"is open to other users (mode {stat.S_IMODE(status.st_mode):04o})"
    return None


def _remove_content(place: DriveDirectory) -> None:
    target = _content_link(place)
    if target is None:
        _unlink_file(place.content)
        return
    # Unlinking follows no link, and in a sticky directory only this user can replace this user's file.
    target.unlink(missing_ok=True)
    place.content.unlink()


def _unlink_file(path: Path) -> None:
    """Remove a regular file; anything else with this name stays."""
    try:
        if stat.S_ISREG(path.lstat().st_mode):
            path.unlink()
    except FileNotFoundError:
        return
