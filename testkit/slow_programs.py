"""A PATH with a wrapper script that delays a program when it starts a load."""

import os
import shutil
from pathlib import Path

#: Shell patterns that match the command line of a load, and that of no other program that a run starts.
_LOADS = "*--status-interval*|*cliffwatch.engines.synthetic*|*cliffwatch-load*--config*"
_PREPARATION = "*--prepare*|*--verify*"


def path_with_slow(program: str, seconds: float, directory: Path) -> str:
    """PATH that begins with `directory`, where a wrapper of `program` is made that delays each load by `seconds`."""
    script = directory / program
    script.write_text(
        f'#!/bin/sh\ncase "$*" in {_PREPARATION}) ;; {_LOADS}) sleep {seconds};; esac\n'
        f'exec {shutil.which(program)} "$@"\n'
    )
    script.chmod(0o755)
    return f"{directory}:{os.environ['PATH']}"
