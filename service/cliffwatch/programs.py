"""Programs of this project's own: built into the state directory by `setup/binaries`, or installed on PATH."""

import shutil
from pathlib import Path

DRIVE = "cliffwatch-drive"
LOAD = "cliffwatch-load"


def find_program(name: str, state_directory: Path) -> Path | None:
    """The executable: the one that was built for this state directory, else the one on PATH; None where neither is."""
    built = shutil.which(state_directory / "target" / "release" / name)
    found = built or shutil.which(name)
    return Path(found) if found else None
