"""What `.ci/run` exits with: make says 2 whatever failed, and what could not be fetched is no failed test."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from testkit.checkout import ROOT

TEST_FAILED = "exit 2"
CRATE_MISSING = (
    "mkdir -p .cliffwatch && STATE=.cliffwatch bash -c 'source setup/common.sh; could_not_fetch crates'; exit 2"
)


@pytest.mark.parametrize(("making", "status"), [("exit 0", 0), (TEST_FAILED, 2), (CRATE_MISSING, 75)])
def test_the_status_says_whether_something_could_not_be_fetched(making: str, status: int, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, does in {"make": making, "apt-get": "exit 0", "sudo": '"$@"'}.items():
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "setup", checkout / "setup")
    shutil.copytree(ROOT / ".ci", checkout / ".ci")
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    for _ in range(2):
        ran = subprocess.run(
            [checkout / ".ci" / "run"], cwd=tmp_path, env=environment, capture_output=True, check=False
        )
        assert ran.returncode == status, ran.stderr.decode()


def test_a_failed_fetch_of_an_earlier_ci_attempt_does_not_count(tmp_path: Path) -> None:
    test_the_status_says_whether_something_could_not_be_fetched(CRATE_MISSING, 75, tmp_path)
    (tmp_path / "bin" / "make").write_text("#!/bin/sh\nexit 2\n")
    environment = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    run = tmp_path / "checkout" / ".ci" / "run"
    assert subprocess.run([run], env=environment, capture_output=True, check=False).returncode == 2
