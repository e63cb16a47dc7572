from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.drives.aging.machine import State


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    """Nothing of its drives is left when the test has ended."""
    made = State(tmp_path / "state").make()
    yield made
    made.close()
