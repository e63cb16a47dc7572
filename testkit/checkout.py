"""Where the checkout is that is tested and measured, and where what was built for it lies."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The state directory of `make`: programs, jars and the probe are built into it.
STATE = Path(os.environ.get("STATE", ROOT / ".cliffwatch")).resolve()
#: Where `setup/binaries` builds the programs.
PROGRAMS = STATE / "target" / "release"
