"""A bare Debian on which the wheel was installed by the lines that docs/install.md gives."""

import re
from pathlib import Path

from testkit.checkout import ROOT
from testkit.debian import Debian, debian
from tests.install.wheels import built_wheel


def lines_of(section: str, page: str = "install.md") -> list[str]:
    """The commands of a section of a page of docs."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    [found] = re.findall(rf"^##+ {section}\n(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE)
    return re.findall(r"^    (\S.*)$", found, re.MULTILINE)


def installed(release: str, directory: Path) -> Debian:
    """Raises AssertionError when a line fails."""
    machine = debian(release, directory)
    wheel = built_wheel()
    machine.write(f"srv/{wheel.name}", wheel.read_bytes())
    done = machine.run("\n".join(["apt-get -qq update", "cd /srv", *lines_of("A wheel")[:3]]))
    assert done.returncode == 0, done.stdout
    return machine
