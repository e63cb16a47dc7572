"""Cost of an installation: size of wheel and image; start-up time, idle CPU and idle memory of the stack from images.

The image is built on the tests' stand-ins for the pinned base images (testkit/compose/stand_ins.py).
"""

import json
import subprocess
import tempfile
import time
from pathlib import Path

from bench.figures import Figure
from testkit.checkout import ROOT
from testkit.compose.stack import BUILT, Stack, stack
from testkit.compose.stand_ins import build_stand_ins
from testkit.docker import engine

SETTLE_SECONDS = 60
SAMPLES = 30
_UNITS = {"B": 1.0, "KiB": 1024.0, "MiB": 1024.0**2, "GiB": 1024.0**3}


def figures() -> list[Figure]:
    wheel = Path(subprocess.run([ROOT / "setup" / "wheel"], check=True, capture_output=True, text=True).stdout.strip())
    found = [Figure("wheel: size", wheel.stat().st_size / 1e6, "MB", 10)]
    with (
        engine() as running,
        tempfile.TemporaryDirectory(prefix="cliffwatch-bench-") as directory,
    ):
        build_stand_ins(running)
        with stack(running, Path(directory)) as described:
            described.run("build", "--quiet", "cliffwatch")
            size = int(running.run("image", "inspect", "--format", "{{.Size}}", BUILT["cliffwatch"]))
            began = time.monotonic()
            described.run("up", "--detach")
            described.wait_healthy()
            found += [
                Figure("image of the service: size", size / 1e6, "MB", 1000),
                Figure("stack from images: until healthy", time.monotonic() - began, "s", 60),
            ]
            time.sleep(SETTLE_SECONDS)
            found += _idle(described)
    return found


def _idle(described: Stack) -> list[Figure]:
    """Mean CPU and memory of the idle stack by `docker stats`, each of whose samples takes a second or two."""
    samples = [_sample(described) for _ in range(SAMPLES)]
    percent, memory = (sum(values) / SAMPLES for values in zip(*samples, strict=True))
    return [
        Figure("stack from images, idle: CPU, of one core", percent, "%", 10),
        Figure("stack from images, idle: memory", memory / 1e6, "MB", 600),
    ]


def _sample(described: Stack) -> tuple[float, float]:
    """CPU in percent of a core and memory in bytes, of all containers together."""
    lines = described.engine.run("stats", "--no-stream", "--format", "{{json .}}").splitlines()
    said = [json.loads(line) for line in lines]
    memory = sum(_bytes(one["MemUsage"].partition(" / ")[0]) for one in said)
    return sum(float(one["CPUPerc"].rstrip("%")) for one in said), memory


def _bytes(text: str) -> float:
    number = text.rstrip("BKMGi")
    return float(number) * _UNITS[text[len(number) :]]
