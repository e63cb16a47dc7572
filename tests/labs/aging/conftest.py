from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.labs.aging.machine import State


@pytest.fixture
def state() -> Iterator[State]:
    """In memory, since drives make their content durable; nothing of them is left when the test has ended."""
    with TemporaryDirectory(dir="/dev/shm", prefix="cliffwatch-test-") as directory:
        made = State(Path(directory) / "state").make()
        yield made
        made.close()
