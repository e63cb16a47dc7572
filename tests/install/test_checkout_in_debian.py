"""A checkout does its main job on a bare Debian by the line that docs/install.md gives, which installs all it needs."""

from pathlib import Path

import pytest
from testkit.checkout import ROOT, tracked
from testkit.debian import Debian, debian
from tests.install.installed import lines_of

pytestmark = [
    pytest.mark.alone(why="a drill measures time, and listens on the ports that are the service's own"),
    pytest.mark.real(why="a compiler is installed, all is compiled, and a drill is four minutes of load"),
    pytest.mark.timeout(2400),
]


@pytest.fixture
def machine(tmp_path: Path) -> Debian:
    """With the files of this checkout that are under version control, and what it takes to type the line."""
    made = debian("bookworm", tmp_path)
    for path in tracked():
        made.write(f"srv/cliffwatch/{path.relative_to(ROOT)}", path.read_bytes(), mode=path.stat().st_mode & 0o777)
    done = made.run("apt-get -qq update && apt-get -qq install --yes --no-install-recommends make")
    assert done.returncode == 0, done.stdout
    return made


def test_its_drill_passes_where_nothing_was_installed(machine: Debian) -> None:
    done = machine.run("\n".join(["cd /srv/cliffwatch", *lines_of("A checkout")]), timeout_seconds=2100)
    assert done.returncode == 0, done.stdout[-4000:]
    assert "CliffwatchLatencyCliff" in done.stdout
    assert "setup: without" not in done.stdout, "something was left out that this machine has"
