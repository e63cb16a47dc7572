"""Programs of this project's own: built into the state directory by `setup/binaries`, or installed on PATH."""

import shutil
import subprocess
import sys
from pathlib import Path

from cliffwatch.base.errors import Code, Problem

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


def require_program(name: str, state_directory: Path) -> Path:
    """The executable. Raises Problem(component_missing) when there is none."""
    program = find_program(name, state_directory)
    if program is None:
        built = state_directory / "target" / "release"
        raise Problem(Code.COMPONENT_MISSING, f"{name} is neither in {built} nor on PATH; `make binaries` builds it")
    return program


def version_of(program: Path) -> str:
    """What the program itself says."""
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return answer.stdout.strip().removeprefix(f"{program.name} ")
