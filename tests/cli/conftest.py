from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.ports import free_port
from tests.cli.machine import Machine, end


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Machine]:
    """A machine on which nothing runs yet."""
    machine = Machine(tmp_path, free_port())
    yield machine
    end(machine)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine whose service is up; the tests that share it leave it up."""
    machine = Machine(tmp_path_factory.mktemp("machine"), free_port())
    done = machine.run("up")
    assert done.returncode == 0, done.stderr
    yield machine
    end(machine)
