"""Prometheus 3's promtool, built from its Go module: Debian's Prometheus is of version 2, the image's of version 3."""

import shutil
import subprocess
from functools import cache
from pathlib import Path

from testkit.checkout import ROOT, STATE

MODULE = ROOT / "tests" / "alerts" / "promtool"
_PACKAGE = "github.com/prometheus/prometheus/cmd/promtool"
#: Go version that MODULE's go.mod requires.
_GO_VERSION = (1, 25)


@cache
def promtool() -> Path:
    """Build promtool and return its path: minutes the first time, seconds later. Raises AssertionError on failure."""
    program = STATE / "promtool" / "promtool"
    command: list[str | Path] = [
        _go(),
        "build",
        "-C",
        MODULE,
        "-mod=readonly",
        "-trimpath",
        "-ldflags=-s -w",
        "-o",
        program,
        _PACKAGE,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return program


def _go() -> str:
    """Go command: the machine's or, when that is too old, the one with which `make watchers` builds the probe."""
    for candidate in (shutil.which("go"), shutil.which(STATE / "ebpf" / "go" / "bin" / "go")):
        if candidate is not None and _version(candidate) >= _GO_VERSION:
            return candidate
    raise AssertionError("no Go is new enough: make watchers gets one where PATH has none that builds the probe")


def _version(go: str) -> tuple[int, ...]:
    said = subprocess.run([go, "env", "GOVERSION"], check=True, capture_output=True, text=True).stdout
    return tuple(int(part) for part in said.strip().removeprefix("go").split(".")[:2])
