"""The wheel of this checkout, for this machine."""

import subprocess
from pathlib import Path

from testkit.checkout import ROOT


def built_wheel() -> Path:
    """Built anew, which takes seconds where the programs are built. Raises AssertionError when it cannot be."""
    done = subprocess.run([ROOT / "setup" / "wheel"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())
