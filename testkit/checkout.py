"""Where the checkout is that is tested and measured, which files it has, and where what was built for it lies."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The state directory of `make`: programs, jars and the probe are built into it.
STATE = Path(os.environ.get("STATE", ROOT / ".cliffwatch")).resolve()
#: What all checkouts share, as in setup/common.sh.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cliffwatch"
#: Where `setup/binaries` builds the programs.
PROGRAMS = STATE / "programs"


def tracked(*patterns: str) -> list[Path]:
    """The files that are under version control and there, those that a pattern of git names, or all."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--", *patterns], check=True, capture_output=True, text=True
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]
