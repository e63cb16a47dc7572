"""Permissions of the service's files, for its own user only.

A process that can read a lock file can hold its lock, and journals name drives and hosts. The umask of every process
that creates files removes the rights of other users. Files of earlier versions are tightened when the service starts.
"""

import os
import stat
from pathlib import Path

#: The umask of the service and of the processes that it starts.
UMASK = 0o077


def keep_private() -> None:
    """Set the umask: this process and its children create files for their owner only."""
    os.umask(UMASK)


def tighten(state_directory: Path, runs_directory: Path) -> None:
    """Remove other users' rights from both directories and from the service's files in them.

    Another user's files are not changed. A directory of runs in which other users have no rights is skipped with
    all below it. In the state directory, which may hold programs too, only the files directly in it are changed.
    """
    _tighten(runs_directory, inside=True)
    if state_directory.is_dir():
        for path in state_directory.iterdir():
            if not path.is_dir():
                _tighten(path, inside=False)
        _tighten(state_directory, inside=False)


def _tighten(path: Path, *, inside: bool) -> None:
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode) or found.st_uid != os.geteuid() or not found.st_mode & UMASK:
            return
        if inside and stat.S_ISDIR(found.st_mode):
            for entry in path.iterdir():
                _tighten(entry, inside=True)
        # Last: a directory without rights for others counts as done with all that is in it.
        path.chmod(stat.S_IMODE(found.st_mode) & ~UMASK)
    except FileNotFoundError:
        return  # it was removed meanwhile, as when a file is replaced
