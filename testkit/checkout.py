"""Paths of the checkout under test: its root, its tracked files, and the directories of what was built for it."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The state directory of `make`: programs, jars and the probe are built into it.
STATE = Path(os.environ.get("STATE", ROOT / ".cliffwatch")).resolve()
#: Cache directory that all checkouts share, as in setup/common.sh.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cliffwatch"
#: Where `setup/binaries` builds the programs.
PROGRAMS = STATE / "programs"


def tracked(*patterns: str) -> list[Path]:
    """Files under version control that exist in the working tree: all, or those that match one of git's patterns."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--", *patterns], check=True, capture_output=True, text=True
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]
