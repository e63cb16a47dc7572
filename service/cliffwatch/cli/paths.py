"""File type at a path that the user typed, which the system may be unable to look at."""

import os
from pathlib import Path


def is_directory(path: Path | str) -> bool:
    """False, too, where the name is too long, or this user may not look."""
    return os.path.isdir(path)  # noqa: PTH112  Path raises there


def is_odd(path: Path | str) -> bool:
    """Whether it is something else than a file or a directory: a FIFO, a socket, a device."""
    return os.path.exists(path) and not is_directory(path) and not is_file(path)  # noqa: PTH110  Path raises there


def is_file(path: Path | str) -> bool:
    """False, too, where the name is too long, or this user may not look."""
    return os.path.isfile(path)  # noqa: PTH113  Path raises there
