"""What is at a path that somebody typed, which may be none that the system can look at."""

import os
from pathlib import Path


def is_directory(path: Path | str) -> bool:
    """False, too, where the name is too long, or this user may not look."""
    return os.path.isdir(path)  # noqa: PTH112  Path raises there


def is_file(path: Path | str) -> bool:
    """False, too, where the name is too long, or this user may not look."""
    return os.path.isfile(path)  # noqa: PTH113  Path raises there
