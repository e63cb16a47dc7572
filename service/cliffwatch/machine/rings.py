"""Registered files of io_uring, which a process holds without a descriptor (io_uring_register(2)).

The ring's entry in /proc/PID/fdinfo lists the files by path, or before Linux 6.10 by name alone. It does not show how a
file was opened, so a process that holds one counts as a writer.
"""

import os
import re
import time
from collections.abc import Callable
from itertools import dropwhile, takewhile
from pathlib import Path

from cliffwatch.machine.mounts import lines_of, unescape

_RING = "anon_inode:[io_uring]"
_FILE = re.compile(r" +\d+: (.*)")
_DELETED = " (deleted)"
#: The list is read again if it is empty: the kernel lists nothing while a process works on the ring.
_ATTEMPTS, _PAUSE_SECONDS = 10, 0.002


def ring_holds(descriptor: Path, is_wanted: Callable[[os.stat_result, Path], bool], names: frozenset[str]) -> bool:
    """Whether the descriptor, as /proc/PID/fd/N, is an io_uring that holds one of the wanted files.

    `names` are the names of the wanted files: a file that no path leads to is identified by its name alone.
    """
    try:
        if str(descriptor.readlink()) != _RING:
            return False
    except OSError:
        return False
    process = descriptor.parent.parent
    return any(_is_it(process, path, is_wanted, names) for path in _registered(process / "fdinfo" / descriptor.name))


def _registered(information: Path) -> list[str]:
    files: list[str] = []
    for _ in range(_ATTEMPTS):
        try:
            lines = lines_of(information)
        except OSError:
            # The process ended, or is another user's.
            break
        after = list(dropwhile(lambda line: not line.startswith("UserFiles:"), lines))
        files = [unescape(match[1]) for match in takewhile(bool, map(_FILE.fullmatch, after[1:])) if match]
        if files or (after and int(after[0].split()[1]) == 0):
            break
        time.sleep(_PAUSE_SECONDS)
    return files


def _is_it(process: Path, path: str, is_wanted: Callable[[os.stat_result, Path], bool], names: frozenset[str]) -> bool:
    # A path is looked up in the process's own namespace first; a name alone may be that of a device.
    places = [Path(f"{process}/root{path}"), Path(path)] if path.startswith("/") else [Path("/dev") / path]
    for place in places:
        try:
            status = place.stat()
        except (OSError, ValueError):
            continue
        if is_wanted(status, place):
            return True
    return (not path.startswith("/") or path.endswith(_DELETED)) and Path(path.removesuffix(_DELETED)).name in names
