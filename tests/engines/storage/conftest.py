"""A service of these tests' own, and places to load that hold more than this machine does."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.loops import command, loop_drive, mounted
from testkit.service import Service

#: What a drive for the field report's load has to hold: two segments of each partition, as three quarters of it.
ROOMY_BYTES = 112 * 1024**3


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("service") / "state") as service:
        yield service


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory in memory that promises far more room than there is; what is not written takes none."""
    with mounted("none", tmp_path_factory.mktemp("memory") / "promised", "-t", "tmpfs", "-o", "size=512g") as place:
        yield place


@pytest.fixture(scope="module")
def roomy_directory(memory: Path) -> Iterator[Path]:
    """A directory on ext4, large enough for any preset, that takes memory only for what is in it."""
    with loop_drive(memory / "volume", ROOMY_BYTES) as drive:
        command("mkfs.ext4", "-q", "-E", "nodiscard", drive.node)
        with mounted(drive.node, memory / "mounted", "-o", "discard") as mount_point:
            yield mount_point
