"""Outcome of each test by its exact node id: a pytest plugin that writes them to a file, and a reader of that file.

pytest -p testkit.outcomes --outcomes=FILE
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import pytest


@dataclass(slots=True)
class Outcome:
    """A test's node id, its duration in seconds with set-up and tear-down, and its failure text, empty if it passed."""

    test: str
    seconds: float = 0.0
    failure: str = ""

    @property
    def module(self) -> str:
        return self.test.partition("::")[0]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--outcomes", type=Path, metavar="FILE", help="write what became of each test, a line each")


def pytest_configure(config: pytest.Config) -> None:
    path: Path | None = config.getoption("outcomes")
    # With xdist, the process that distributes the tests receives the reports of all workers.
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Writer(path.open("w", encoding="utf-8")))


class _Writer:
    def __init__(self, file: TextIO) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        failure = report.longreprtext if report.failed else ""
        line = {"test": report.nodeid, "seconds": report.duration, "failure": failure}
        print(json.dumps(line), file=self._file, flush=True)

    def pytest_unconfigure(self) -> None:
        self._file.close()


def read_outcomes(path: Path) -> list[Outcome]:
    """Outcomes in the order in which the tests began; empty when pytest ended before the first test."""
    found: dict[str, Outcome] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        body = json.loads(line)
        outcome = found.setdefault(body["test"], Outcome(body["test"]))
        outcome.seconds += body["seconds"]
        outcome.failure += body["failure"]
    return list(found.values())
