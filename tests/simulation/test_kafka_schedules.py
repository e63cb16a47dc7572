"""The Kafka engine goes through schedules from seeds, for longer than `cargo test` does."""

import os
import re
import subprocess

import pytest
from testkit.checkout import ROOT, STATE

SECONDS = 60

pytestmark = [
    pytest.mark.real(why="what one schedule in ten thousand finds takes time to come up"),
    pytest.mark.timeout(SECONDS + 900),
]


def test_no_schedule_loses_or_repeats_what_was_acknowledged() -> None:
    command = ("cargo", "test", "--locked", "--package=cliffwatch-kafka", "--lib", "simulation::", "--", "--nocapture")
    environment = {
        **os.environ,
        "CARGO_TARGET_DIR": str(STATE / "target"),
        "CLIFFWATCH_SIMULATION_SECONDS": str(SECONDS),
    }
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, errors="replace", check=False
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-8000:]
    [schedules] = re.findall(r"^(\d+) schedules$", ran.stdout, re.MULTILINE)
    print(f"{schedules} schedules")
    assert int(schedules) > 100
