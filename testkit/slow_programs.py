"""A PATH on which a program takes long to begin a load."""

import os
import shutil
from pathlib import Path

#: What the command of a load, and of nothing else that a run starts, holds.
_LOADS = "*--status-interval*|*cliffwatch.engines.synthetic*|*cliffwatch-load*--config*"
_PREPARATION = "*--prepare*|*--verify*"


def path_with_slow(program: str, seconds: float, directory: Path) -> str:
    """PATH, with a `program` first that begins each load so much later; it is made in `directory`."""
    script = directory / program
    script.write_text(
        f'#!/bin/sh\ncase "$*" in {_PREPARATION}) ;; {_LOADS}) sleep {seconds};; esac\n'
        f'exec {shutil.which(program)} "$@"\n'
    )
    script.chmod(0o755)
    return f"{directory}:{os.environ['PATH']}"
