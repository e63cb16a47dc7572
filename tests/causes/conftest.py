from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.causes.stage import ROOMY
from tests.labs.aging.machine import State

from cliffwatch.base.resources import DRILL_PROFILE
from cliffwatch.cli.aging import drive_settings
from cliffwatch.labs.aging.lifecycle import AgingDrive, AttachRequest


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    """A place for aging drives; nothing of them is left when the test has ended."""
    made = State(tmp_path / "state").make()
    yield made
    made.close()


@pytest.fixture
def drive(state: State) -> AgingDrive:
    """A drive of modelled flash with a file system, far from any garbage collection."""
    return state.attach(AttachRequest(ROOMY))


@pytest.fixture
def drill_drive(state: State) -> AgingDrive:
    """The small drive of a drill, whose file system discards nothing; its content is in memory."""
    settings = drive_settings(DRILL_PROFILE, None, [])
    return state.attach(AttachRequest(settings, content_directory=Path("/dev/shm")))  # the drive names it
