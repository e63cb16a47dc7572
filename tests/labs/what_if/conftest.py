"""A small drive that falls off its cliff within hours, and the simulator that this checkout built."""

from pathlib import Path

import pytest
from testkit.checkout import STATE

from cliffwatch.base.programs import DRIVE, find_program

#: Some 20 ms a simulation.
SMALL = """\
workload: streams
capacity: 6.4GB
pages-per-block: 2048
rate: 0.1GB
duration: 5min
streams: 8
segment-size: 8MiB
extent-size: 1MiB
retention: 0.75
channels: 2
dies-per-channel: 2
"""


@pytest.fixture(scope="session")
def simulator() -> Path:
    program = find_program(DRIVE, STATE)
    assert program is not None, f"{DRIVE} is not built: setup/binaries"
    return program


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return path
