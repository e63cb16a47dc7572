"""What `make test` leaves out, and what `.ci/run` leaves out when there is no time: both say so."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from testkit.checkout import ROOT
from testkit.choosing import LONGEST, TOGETHER

TESTS = """
import pytest

@pytest.mark.long(seconds=5000, why="to be left out")
def test_endless(): assert False

@pytest.mark.long(seconds=500, why="to be run")
def test_longer(): pass

@pytest.mark.long(seconds=50, why="to be run first")
def test_shorter(): pass

def test_quick(): pass
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text("from testkit.choosing import *\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n long\n alone\n")
    (tmp_path / "test_them.py").write_text(TESTS)
    return tmp_path


def run(suite: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "xdist", "-p", "no:cacheprovider", *options],
        cwd=suite,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_long_tests_are_run_from_the_shortest_on_and_what_does_not_fit_is_named(suite: Path) -> None:
    done = run(suite, "-m", "long", f"--until={time.time() + 1000}")
    assert done.returncode == 0, done.stdout
    passed = [line.split()[0] for line in done.stdout.splitlines() if " PASSED" in line]
    assert passed == ["test_them.py::test_shorter", "test_them.py::test_longer"]
    (left_out,) = [line.split() for line in done.stdout.splitlines() if "test_endless" in line]
    assert left_out == ["5000", "s", "test_them.py::test_endless"]


def test_without_a_time_nothing_is_left_out(suite: Path) -> None:
    done = run(suite, "-m", "long")
    assert done.returncode == 1
    assert "1 failed, 2 passed" in done.stdout


def test_a_long_test_says_why_it_is(suite: Path) -> None:
    (suite / "test_them.py").write_text(TESTS.replace(', why="to be run first"', ""))
    done = run(suite)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "test_shorter: its marker does not say why" in done.stderr


def test_tests_of_one_module_or_of_modules_that_belong_together_stay_in_one_process(suite: Path) -> None:
    note = f"import os, pathlib; pathlib.Path({str(suite)!r}, f'{{__name__}}-{{number}}').write_text(str(os.getpid()))"
    test = f"@pytest.mark.parametrize('number', range(20))\ndef test_it(number):\n    {note}\n"
    together = TOGETHER["what costs much to set up: a cluster"][0]
    for name, directory in (("a", "tests/base"), ("b", "tests/base"), ("c", together), ("d", together)):
        (suite / directory).mkdir(parents=True, exist_ok=True)
        (suite / directory / f"test_{name}.py").write_text(f"import pytest\n{test}")
    done = run(suite, "-n", "2", "-k", "test_it")
    assert done.returncode == 0, done.stdout
    processes = {name: {path.read_text() for path in suite.glob(f"test_{name}-*")} for name in "abcd"}
    assert [len(each) for each in processes.values()] == [1, 1, 1, 1]
    assert processes["c"] == processes["d"]
    assert len(set.union(*processes.values())) == 2


def test_what_belongs_together_is_there() -> None:
    for place in (*LONGEST, *(each for places in TOGETHER.values() for each in places)):
        assert (ROOT / place).exists() or list(ROOT.glob(f"{place}*.py")), f"{place} is no module and no directory"
