"""A machine without drives, to which a test adds some."""

from pathlib import Path

import pytest
from tests.exporters.drive.exporter import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    (made.sys / "class" / "nvme").mkdir(parents=True)
    made.answers.mkdir()
    return made
