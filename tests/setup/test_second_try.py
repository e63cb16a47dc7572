"""What fails beside others and passes by itself is flaky; what is broken fails the gate."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from testkit.checkout import ROOT
from testkit.outcomes import Outcome, read_outcomes
from testkit.second_try import FAILURES_LIMIT, TRIES, touched_files, tried_again
from testkit.suite import python, summary

TESTS = """
import os

def test_sound(): pass

def test_flaky(): assert "PYTEST_XDIST_WORKER" not in os.environ, "beside others"
"""
A_TEST = "tests/base/test_clock.py::test_it"


def failed(*tests: str) -> list[Outcome]:
    return [Outcome("tests/base/test_clock.py::test_sound"), *(Outcome(test, failure="E  why") for test in tests)]


def always(test: str) -> bool:
    return True


def test_a_test_that_passes_each_time_by_itself_is_flaky() -> None:
    tried: list[str] = []

    def passes(test: str) -> bool:
        tried.append(test)
        return True

    (flaky,) = tried_again(failed(A_TEST), 1, (), passes) or []
    assert tried == [A_TEST] * TRIES
    assert str(flaky).splitlines() == [f"FLAKY {A_TEST}: failed beside others, passed 2 times by itself", "E  why"]


@pytest.mark.parametrize("outcomes", [[False], [True, False]])
def test_a_test_that_fails_by_itself_stands(outcomes: list[bool]) -> None:
    answers = iter(outcomes)
    assert tried_again(failed(A_TEST), 1, (), lambda test: next(answers)) is None


@pytest.mark.parametrize(
    ("outcomes", "status", "touched"),
    [
        pytest.param(failed(*(f"{A_TEST}{n}" for n in range(FAILURES_LIMIT + 1))), 1, (), id="too many failed"),
        pytest.param(failed(A_TEST), 2, (), id="pytest was interrupted"),
        pytest.param(failed(), 1, (), id="what failed is not known"),
        pytest.param(failed("tests/gate/test_hold.py::test_it"), 1, (), id="the safety gate"),
        pytest.param(failed("tests/journal/test_recovery.py::test_it"), 1, (), id="what a journal keeps"),
        pytest.param(failed(A_TEST), 1, ("tests/base/test_clock.py",), id="the change touched it"),
        pytest.param(failed("tests/base/test_clock.py"), 1, (), id="a module that cannot be read"),
    ],
)
def test_some_failures_are_not_tried_again(outcomes: list[Outcome], status: int, touched: tuple[str, ...]) -> None:
    def never(test: str) -> bool:
        raise AssertionError(f"{test} is tried again")

    assert tried_again(outcomes, status, touched, never) is None


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository whose commits are older than a day, with a flaky test."""
    (tmp_path / "test_them.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text("import sys\nsys.path.insert(0, " + repr(str(ROOT)) + ")\n")
    commit(tmp_path, "2026-01-01T00:00:00Z")
    commit(tmp_path, "2026-02-01T00:00:00Z", "later")
    return tmp_path


def commit(root: Path, when: str, name: str | None = None) -> None:
    environment = {"GIT_COMMITTER_DATE": when, "GIT_AUTHOR_DATE": when, "HOME": str(root), "PATH": "/usr/bin:/bin"}
    if name is not None:
        (root / name).write_text("")
    me = ("-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "init.defaultBranch=main")
    for arguments in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message=a change")):
        subprocess.run(["git", *me, *arguments], cwd=root, env=environment, check=True)


def test_the_files_of_a_change_are_those_of_the_last_day(checkout: Path) -> None:
    assert touched_files(checkout) == ["later"]
    commit(checkout, "2026-02-01T12:00:00Z", "and-later")
    assert touched_files(checkout) == ["and-later", "later"]


@pytest.mark.parametrize(
    ("change", "status", "flaky"),
    [
        pytest.param(lambda text: text, 0, ["test_them.py::test_flaky"], id="fails beside others only"),
        pytest.param(lambda text: text.replace("test_sound(): pass", "test_sound(): assert False"), 1, [], id="broken"),
    ],
)
def test_the_gate_passes_with_a_flaky_test_and_fails_with_a_broken_one(
    checkout: Path,
    change: Callable[[str], str],
    status: int,
    flaky: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    # What is not needed here takes seconds to import.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "xdist.plugin")
    (checkout / "test_them.py").write_text(change(TESTS))
    part = python("Python", "-n", "2", "-p", "no:cacheprovider", second_try=True, root=checkout)
    assert (part.status, [each.test for each in part.flaky]) == (status, flaky)
    assert [line.partition(": ")[0] for line in summary([part]).splitlines() if line.startswith("FLAKY")] == [
        f"FLAKY {test}" for test in flaky
    ]


def test_an_outcome_has_all_seconds_of_its_test_and_what_it_failed_with(tmp_path: Path) -> None:
    file = tmp_path / "outcomes"
    file.write_text(
        '{"test": "a", "seconds": 1, "failure": ""}\n{"test": "b", "seconds": 2, "failure": "E"}\n'
        '{"test": "a", "seconds": 3, "failure": ""}\n'
    )
    assert read_outcomes(file) == [Outcome("a", 4), Outcome("b", 2, "E")]
    assert read_outcomes(tmp_path / "none") == []
