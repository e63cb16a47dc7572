"""Find this project's own programs, built by `setup/binaries` or installed with the package."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from cliffwatch.base.errors import Code, Problem

DRIVE = "cliffwatch-drive"
LOAD = "cliffwatch-load"
#: Timeout of a query to a program, such as for its version, which is answered at once.
ANSWER_SECONDS = 10.0


def find_program(name: str, state_directory: Path) -> Path | None:
    """Path of an executable; None where there is none.

    Looked for, in this order: in `programs` of the state directory, in `programs` beside this Python's environment
    (the state directory that `make` installed into), in the wheel's scripts, on PATH.
    """
    for directory in (state_directory, Path(sys.prefix).parent):
        if built := shutil.which(directory / "programs" / name):
            return Path(built)
    found = shutil.which(Path(sysconfig.get_path("scripts")) / name) or shutil.which(name)
    return Path(found) if found else None


def require_program(name: str, state_directory: Path) -> Path:
    """Path of an executable, as `find_program` gives it. Raises Problem(component_missing) when there is none."""
    program = find_program(name, state_directory)
    if program is None:
        built = state_directory / "programs"
        raise Problem(
            Code.COMPONENT_MISSING,
            f"{name} is neither in {built}, nor beside this Python, nor on PATH; `make binaries` builds it",
        )
    return program


def ask(program: Path, *arguments: str, standard_input: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program; returns output and exit status. Raises Problem(component_missing) after ANSWER_SECONDS."""
    try:
        return subprocess.run(
            [program, *arguments],
            input=standard_input,
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        detail = f"{program} {arguments[0]} did not answer within {ANSWER_SECONDS:g} s; see that it is the right one"
        raise Problem(Code.COMPONENT_MISSING, detail) from error


def version_of(program: Path) -> str:
    """Version that the program itself prints; empty if none. Raises Problem(component_missing) on a timeout."""
    return ask(program, "--version").stdout.strip().removeprefix(f"{program.name} ")
