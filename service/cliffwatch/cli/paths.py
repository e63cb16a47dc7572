"""File type at a path that the user typed; a path that cannot be examined counts as absent."""

import os
from pathlib import Path


def is_directory(path: Path | str) -> bool:
    """Whether the path is a directory; False, too, if the name is too long or access is denied."""
    return os.path.isdir(path)  # noqa: PTH112  Path raises there


def is_odd(path: Path | str) -> bool:
    """Whether the path exists and is neither a file nor a directory: a FIFO, a socket, a device."""
    return os.path.exists(path) and not is_directory(path) and not is_file(path)  # noqa: PTH110  Path raises there


def is_file(path: Path | str) -> bool:
    """Whether the path is a regular file; False, too, if the name is too long or access is denied."""
    return os.path.isfile(path)  # noqa: PTH113  Path raises there
