"""Which tests `make test`, `make test-real` and `make test-timing` run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from testkit.checkout import ROOT
from testkit.sets import LONGEST, PLACES, TOGETHER

TESTS = """
import pytest

def test_unmarked(): pass

@pytest.mark.real(why="in a container")
def test_real(): pass

@pytest.mark.timing(why="compares times")
class TestTimes:
    def test_timing(self): pass

    @pytest.mark.gate(why="smoke")
    def test_smoke(self): pass
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text("from testkit.sets import *\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n gate\n real\n timing\n alone\n")
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


def passed(done: "subprocess.CompletedProcess[str]") -> set[str]:
    assert done.returncode == 0, done.stdout + done.stderr
    return {line.split()[0].rpartition("::")[2] for line in done.stdout.splitlines() if " PASSED" in line}


@pytest.mark.parametrize(
    ("name", "tests"), [("gate", {"test_unmarked", "test_smoke"}), ("real", {"test_real"}), ("timing", {"test_timing"})]
)
def test_each_test_is_of_one_set_which_the_nearest_marker_decides(suite: Path, name: str, tests: set[str]) -> None:
    assert passed(run(suite, f"--set={name}")) == tests


def test_without_a_set_all_are_run(suite: Path) -> None:
    assert len(passed(run(suite))) == 4


def test_a_directory_is_of_a_set_as_a_whole_but_for_what_is_marked(suite: Path) -> None:
    place = next(place for place in PLACES["real"] if place.endswith("/"))
    (suite / place).mkdir(parents=True)
    (suite / "test_them.py").rename(suite / place / "test_them.py")
    assert passed(run(suite, "--set=real")) == {"test_unmarked", "test_real"}


def test_a_marker_says_why(suite: Path) -> None:
    (suite / "test_them.py").write_text(TESTS.replace('(why="in a container")', ""))
    done = run(suite)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "test_real: its marker does not say why" in done.stderr


def test_tests_of_one_module_or_of_modules_that_belong_together_stay_in_one_process(suite: Path) -> None:
    note = f"import os, pathlib; pathlib.Path({str(suite)!r}, f'{{__name__}}-{{number}}').write_text(str(os.getpid()))"
    test = f"@pytest.mark.parametrize('number', range(20))\ndef test_it(number):\n    {note}\n"
    together = TOGETHER["a Kafka cluster, which takes long to start"][0]
    for name, directory in (("a", "tests/base"), ("b", "tests/base"), ("c", together), ("d", together)):
        (suite / directory).mkdir(parents=True, exist_ok=True)
        (suite / directory / f"test_{name}.py").write_text(f"import pytest\n{test}")
    done = run(suite, "-n", "2", "-k", "test_it")
    assert done.returncode == 0, done.stdout
    processes = {name: {path.read_text() for path in suite.glob(f"test_{name}-*")} for name in "abcd"}
    assert [len(each) for each in processes.values()] == [1, 1, 1, 1]
    assert processes["c"] == processes["d"]
    assert len(set.union(*processes.values())) == 2


@pytest.mark.parametrize(
    "place",
    [
        *LONGEST,
        *(place for places in PLACES.values() for place in places),
        *(each for places in TOGETHER.values() for each in places),
    ],
)
def test_a_place_that_is_named_is_there(place: str) -> None:
    assert (ROOT / place).exists()
