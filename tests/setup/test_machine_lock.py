"""Tests that attach devices run beside each other; those that list all of a machine's wait until they are alone."""

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest
from testkit.checkout import ROOT
from testkit.machine_lock import machine_lock

OTHER = """
import sys
from pathlib import Path
from testkit.machine_lock import machine_lock
with machine_lock(exclusive=sys.argv[2] == "True", path=Path(sys.argv[1])):
    print("held", flush=True)
"""


@pytest.mark.parametrize(("mine", "others"), [(True, True), (True, False), (False, True)])
def test_an_exclusive_machine_lock_excludes_others_and_reports_the_wait(
    tmp_path: Path, mine: bool, others: bool
) -> None:
    path = tmp_path / "lock"
    with machine_lock(exclusive=mine, path=path):
        other = start(path, others)
        assert other.stderr is not None
        assert other.stderr.readline() == f"waiting for {path}: tests of another checkout run on this machine\n"
    assert other.communicate()[0] == "held\n"


def test_shared_machine_locks_are_held_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with machine_lock(exclusive=False, path=path):
        assert start(path, exclusive=False).communicate() == ("held\n", "")


def test_the_lock_ends_with_a_test_that_fails(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with pytest.raises(AssertionError), machine_lock(exclusive=True, path=path):
        raise AssertionError
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def start(path: Path, exclusive: bool) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", OTHER, str(path), str(exclusive)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
