"""Programs of this project's own: built into the state directory by `setup/binaries`, or installed on PATH."""

import shutil
import sys
from pathlib import Path

DRIVE = "cliffwatch-drive"
LOAD = "cliffwatch-load"


def find_program(name: str, state_directory: Path) -> Path | None:
    """The executable: the one that was built for this state directory, else the one beside this Python's environment (a
    state directory too, where `make` installed it), else the one on PATH; None where none is."""
    for directory in (state_directory, Path(sys.prefix).parent):
        if built := shutil.which(directory / "target" / "release" / name):
            return Path(built)
    found = shutil.which(name)
    return Path(found) if found else None
