"""The wheel for machines of another architecture, built on a bare Debian by the lines of RELEASING.md."""

import re
import tomllib
from pathlib import Path

import pytest
from testkit.checkout import ROOT
from testkit.debian import Debian, debian

pytestmark = [
    pytest.mark.real(why="a compiler for another architecture is installed, and all is compiled with it"),
    pytest.mark.timeout(1800),
]
STATE = "/srv/state"
PACKAGES = ("cargo-web", "gcc", "libc6-dev", "python3-venv", "qemu-user-static", "rustc-web", "unzip")
EMULATOR = "qemu-aarch64-static -L /usr/aarch64-linux-gnu"


def lines_for_arm64() -> list[str]:
    """The commands that RELEASING.md gives for what such a wheel takes."""
    return re.findall(r"^       ((?:dpkg|apt-get) .*arm64.*)$", (ROOT / "RELEASING.md").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Debian, str]:
    """A machine, and what it said when the wheel was built on it."""
    machine = debian("bookworm", tmp_path_factory.mktemp("arm64"))
    [hatchling] = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    prepare = [
        "apt-get -qq update",
        f"apt-get -qq install --yes --no-install-recommends {' '.join(PACKAGES)}",
        *(line.replace("install", "-qq install --yes --no-install-recommends") for line in lines_for_arm64()),
        f"python3 -m venv {STATE}/venv",
        f"{STATE}/venv/bin/pip install --quiet {hatchling}",
        f"cd {ROOT}",
        f"STATE={STATE} setup/wheel aarch64",
    ]
    done = machine.run("\n".join(prepare), reads=[ROOT], timeout_seconds=1500)
    assert done.returncode == 0, done.stdout[-4000:]
    return machine, done.stdout


def test_its_name_says_what_it_is_for(built: tuple[Debian, str]) -> None:
    _, said = built
    assert re.fullmatch(rf"{STATE}/dist/cliffwatch-[\d.]+-py3-none-manylinux_2_\d+_aarch64\.whl", said.splitlines()[-1])


@pytest.mark.parametrize("program", ["cliffwatch-drive", "cliffwatch-load"])
def test_its_programs_start_on_that_architecture(built: tuple[Debian, str], program: str) -> None:
    machine, said = built
    wheel = said.splitlines()[-1]
    start = [
        f"cd /srv && unzip -o -q {wheel}",
        f"chmod +x cliffwatch-*.data/scripts/{program}",
        f"{EMULATOR} cliffwatch-*.data/scripts/{program} --version",
    ]
    done = machine.run("\n".join(start))
    assert done.returncode == 0, done.stdout
    assert done.stdout.strip() == f"{program} {Path(wheel).name.split('-')[1]}"
