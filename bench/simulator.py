"""Speed and memory of the drive simulator, from the output of the drive's `cargo bench`."""

import os
import re
import subprocess
from pathlib import Path

from bench.figures import Figure
from testkit.checkout import STATE

LINE = re.compile(r"(?P<name>\S+) (?P<value>[0-9.]+) (?P<sign>[<>]=)(?P<target>[0-9.]+)")
UNITS = {"seconds": "s"}


def figures() -> list[Figure]:
    command = ["cargo", "bench", "--quiet", "--locked", "--package", "cliffwatch-drive", "--bench", "figures"]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(STATE / "target")}
    # A figure that is missed shows in its line; what did not run at all has no line.
    done = subprocess.run(
        command, env=environment, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=False
    )
    found = [read(line) for line in done.stdout.splitlines() if LINE.fullmatch(line)]
    if not found:
        raise RuntimeError("cargo bench printed no figures")
    return found


def read(line: str) -> Figure:
    parts = LINE.fullmatch(line)
    assert parts is not None
    name = parts["name"]
    unit = UNITS.get(name.rsplit("_", 1)[-1], "")
    words = name.replace("_", " ")
    return Figure(f"simulator: {words}", float(parts["value"]), unit, float(parts["target"]), parts["sign"] == ">=")
