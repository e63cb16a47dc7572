"""Permissions of the service's files, for its own user only: a lock that can be read can be held by another process,
and journals name drives and hosts.

Files and directories are made without rights for other users, by the umask of every process that makes some. State that
was made before that is tightened when the service starts.
"""

import os
import stat
from pathlib import Path

#: The umask of the service and of what it starts.
UMASK = 0o077


def keep_private() -> None:
    """Set the umask: this process and its children make files for their owner alone."""
    os.umask(UMASK)


def tighten(state_directory: Path, runs_directory: Path) -> None:
    """Remove other users' rights from both directories and from what the service keeps in them.

    Another user's files are not changed. Runs that no other user can enter are not looked into, and of the state
    directory, which may hold programs too, only the files right in it are.
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
        # Last: it says that all in it is done.
        path.chmod(stat.S_IMODE(found.st_mode) & ~UMASK)
    except FileNotFoundError:
        return  # it went meanwhile, as a file does that is replaced whole
