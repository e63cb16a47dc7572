"""A test that compared times on a machine that was not quiet is void, which is not passed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from testkit.checkout import ROOT
from testkit.quiet_machine import ProcessorTime

#: Beside two processes that take all the time there is, or all that a hypervisor left.
CONFTEST = """
from testkit import quiet_machine
from testkit.quiet_machine import ProcessorTime

quiet_machine.PATIENCE_SECONDS = quiet_machine.LOOK_SECONDS = 0.0
looks = [(0, 0, 0), (100, {busy}, 0), (100, 0, 0), (200, 100, {stolen})]
times = iter([ProcessorTime(*look) for look in looks])
ProcessorTime.read = classmethod(lambda cls: next(times))
"""


def run(directory: Path, busy: int, stolen: int, test: str) -> "subprocess.CompletedProcess[str]":
    (directory / "conftest.py").write_text(CONFTEST.format(busy=busy, stolen=stolen))
    (directory / "test_it.py").write_text(f"def test_it(): {test}\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "testkit.quiet_machine", "-p", "no:cacheprovider"],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("test", ["pass", "assert False"])
@pytest.mark.parametrize(("busy", "stolen"), [(50, 0), (0, 10)])
def test_a_test_beside_others_is_void_whatever_it_found(tmp_path: Path, busy: int, stolen: int, test: str) -> None:
    done = run(tmp_path, busy, stolen, test)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    assert "1 void" in done.stdout
    assert f"VOID: test_it.py::test_it: processors {busy}% busy before, {stolen}.0% stolen meanwhile" in done.stdout


@pytest.mark.parametrize(("test", "status"), [("pass", 0), ("assert False", 1)])
def test_on_a_quiet_machine_a_test_is_what_it_is(tmp_path: Path, test: str, status: int) -> None:
    done = run(tmp_path, 5, 1, test)
    assert done.returncode == status, done.stdout
    assert "void" not in done.stdout
    assert "test_it.py::test_it: processors 5% busy before, 1.0% stolen meanwhile" in done.stdout


def test_processor_time_is_read_from_proc_stat(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  10 20 30 400 50 6 7 80 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    assert ProcessorTime.read(stat) == ProcessorTime(total=603, busy=73, stolen=80)
    assert ProcessorTime.read().total > 0
