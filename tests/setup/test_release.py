"""What a release needs to be made: a section of its own among the changes, and what earlier ones left."""

import re
import subprocess
from pathlib import Path

from testkit.checkout import ROOT

from cliffwatch.base.version import VERSION

CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_versions_in_the_changelog_descend_from_this_one() -> None:
    versions = [
        tuple(map(int, found.split("."))) for found in re.findall(r"^## (\d+\.\d+\.\d+)$", CHANGES, re.MULTILINE)
    ]
    assert ".".join(map(str, versions[0])) == VERSION
    assert versions == sorted(set(versions), reverse=True)
    assert len(versions) == CHANGES.count("\n## ")


def test_each_release_before_this_one_left_what_can_be_upgraded() -> None:
    before = set(re.findall(r"^## (\d+\.\d+\.\d+)$", CHANGES, re.MULTILINE)) - {VERSION}
    assert {path.name for path in (ROOT / "tests" / "upgrade" / "releases").iterdir()} == before


def test_a_release_is_refused_without_its_section(tmp_path: Path) -> None:
    copied = tmp_path / "checkout"
    for name in ("setup/release", "setup/common.sh", "Cargo.toml"):
        (copied / name).parent.mkdir(parents=True, exist_ok=True)
        (copied / name).write_bytes((ROOT / name).read_bytes())
    (copied / "CHANGELOG.md").write_text("# Changes\n\n## 9.9.9\n\n- Another.\n", encoding="utf-8")
    done = subprocess.run(["bash", copied / "setup" / "release"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f'CHANGELOG.md has no section "## {VERSION}"' in done.stderr
