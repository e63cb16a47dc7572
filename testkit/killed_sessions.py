"""Remove mounts and loop devices of killed pytest sessions, before the next tests start.

A loop device over a file on an overlay makes the safety gate refuse other loop devices: one killed session would fail
the tests of all later ones.
"""

import os
import re
import subprocess
import tempfile
from pathlib import Path

from cliffwatch.machine.mounts import read_mounts
from cliffwatch.machine.sysfs import read_text

#: How pytest names the directory of a session, in which it writes its process id to `.lock` while it runs.
_SESSION = re.compile(r"pytest-of-[^/]+/pytest-\d+")


def clear_killed_sessions(temporary: Path | None = None, sys: Path = Path("/sys")) -> list[str]:
    """Unmount and detach all that lies in directories of ended sessions; returns the commands, with any errors.

    Mounts are undone lazily, the last one first: a loop device stays attached until its mount is undone.
    """
    temporary = temporary or Path(tempfile.gettempdir())
    removed = []
    # Loop devices first: once the file system of a backing file is unmounted, the file is no longer named by its path.
    for device in sorted((sys / "block").glob("loop*")):
        backing = read_text(device / "loop" / "backing_file")
        if backing is not None and _is_left(Path(backing.removesuffix(" (deleted)")), temporary):
            removed += _run("losetup", "--detach", Path("/dev") / device.name)
    for mount in reversed(read_mounts()):
        if _is_left(mount.mount_point, temporary):
            removed += _run("umount", "--lazy", mount.mount_point)
    return removed


def _is_left(path: Path, temporary: Path) -> bool:
    """Whether the path is in the directory of a session that no longer runs."""
    if not path.is_relative_to(temporary):
        return False
    session = _SESSION.match(str(path.relative_to(temporary)))
    return session is not None and not _runs(temporary / session[0])


def _runs(session: Path) -> bool:
    try:
        os.kill(int((session / ".lock").read_text()), 0)
    except (FileNotFoundError, ProcessLookupError):
        return False
    except (PermissionError, ValueError):
        # The process belongs to another user, or the file is being written.
        return True
    return True


def _run(*command: str | Path) -> list[str]:
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, check=False)
    said = " ".join(map(str, command))
    return [said if done.returncode == 0 else f"{said}: {done.stderr.strip()}"]
