from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit import probe as probes
from testkit.loops import MIB, LoopDrive, loop_drive


@pytest.fixture(scope="session")
def built() -> None:
    probes.build()


@pytest.fixture(scope="session")
def probe(built: None) -> Iterator[probes.Probe]:
    """One exporter for all tests; each looks at devices of its own and at what changed."""
    with probes.running_probe() as running:
        yield running


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[LoopDrive]:
    """A loop device of 64 MiB, all of it written: holes would be read without the drive."""
    file = tmp_path / "drive.img"
    file.write_bytes(bytes(64 * MIB))
    with loop_drive(file) as attached:
        yield attached
