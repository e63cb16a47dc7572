"""`--not-worse-than`: a run in CI beside earlier runs that have a label."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.junit_cases import cases_of, parsed
from tests.cli.machine import Machine

TARGET = ("--target", "synthetic:one")
FLAG = "--not-worse-than"


@pytest.fixture(scope="module")
def released(machine: Machine) -> Machine:
    """A service with three runs of the load `nightly` that have a label, and one of a longer load."""
    start = ("run", "start", machine.workload("nightly"), *TARGET, "--wait")
    for number, label in enumerate(("release=26.1", "release=26.1", "release=26.2")):
        done = machine.run(*start, "--id", f"r{number}", "--label", label, "--label", f"number={number}")
        assert done.returncode == 0, done.stderr
    assert machine.run(*start, "--id", "longer", "--soak", "40m", "--label", "number=2").returncode == 0
    return machine


def test_a_run_that_is_not_worse_passes(released: Machine, tmp_path: Path) -> None:
    written = tmp_path / "out.xml"
    ending = ("--wait", FLAG, "label:release", "--junit", str(written))
    done = released.run("run", "start", "nightly", *TARGET, "--id", "same", *ending)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "compared: not worse than 3 earlier runs with the label release: no figure by ×1.2 or more" in lines
    assert "          with r2, r1, r0" in lines
    assert len(lines) == 7, lines
    assert cases_of(parsed(written.read_bytes())) == {
        "verdict": "passed",
        "not worse than label:release: publish p50": "passed",
        "not worse than label:release: publish p99": "passed",
        "not worse than label:release: operations": "passed",
    }
    again = released.run("--output", "json", "run", "watch", "same", FLAG, "label:release=26.1")
    assert (again.returncode, json.loads(again.stdout)["comparison"]["runs"]) == (0, ["r1", "r0"])


def test_a_run_that_is_worse_or_inconclusive_fails(released: Machine, tmp_path: Path) -> None:
    """Earlier runs were twice as fast, as the index has it: the synthetic engine cannot become slower."""
    with closing(sqlite3.connect(released.state / "cliffwatch.sqlite3")) as database, database:
        for run in ("r0", "r1"):
            (figures,) = database.execute("SELECT figures FROM runs WHERE id = ?", (run,)).fetchone()
            faster = json.loads(figures) | {"p99_seconds": json.loads(figures)["p99_seconds"] / 2}
            database.execute("UPDATE runs SET figures = ? WHERE id = ?", (json.dumps(faster), run))
    written = tmp_path / "out.xml"
    ending = ("--wait", FLAG, "label:release=26.1", "--junit", str(written))
    done = released.run("run", "again", "r1", *ending)
    assert done.returncode == 1, done.stdout
    twice = r"publish p99 ×(1\.9\d|2|2\.0\d)"
    assert re.search(rf" +{twice} \(95 %: [\d.]+ to [\d.]+\): worse\n", done.stdout), done.stdout
    assert re.search(f"compared: worse than 2 earlier runs with the label release=26.1: {twice}\n", done.stdout)
    assert cases_of(parsed(written.read_bytes()))["not worse than label:release=26.1: publish p99"] == "failure"
    unknown = released.run("run", "watch", "longer", FLAG, "label:release=26.1", "--junit", str(written))
    assert unknown.returncode == 1
    assert "compared: inconclusive: no earlier runs of the same load have the label release=26.1" in unknown.stdout
    assert "          not with r1: its load is another, by `phases.soak`\n" in unknown.stdout
    assert cases_of(parsed(written.read_bytes())) == {"verdict": "passed", "not worse than label:release=26.1": "error"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--wait", FLAG, "release"),
            "--not-worse-than: 'release' names no label; write label:NAME or label:NAME=VALUE",
        ),
        (("--wait", FLAG, "label:"), "--not-worse-than: '' is not a label"),
        ((FLAG, "label:release"), "--not-worse-than: there is no result before the run is over; give --wait too"),
        (
            ("--wait", FLAG, "label:none"),
            "--not-worse-than: no earlier runs of the same load have the label none, and 2 are needed to know how much "
            "such runs differ; label some: `cliffwatch run label RUN none=VALUE`",
        ),
        (
            ("--wait", "--soak", "40m", FLAG, "label:number=2"),
            "1 earlier run of the same load has the label number=2, and 2 are needed to know how much such runs "
            "differ; run r2 has it, and its load is another, by `phases.soak`; label some: `cliffwatch run label RUN "
            "number=2`",
        ),
    ],
)
def test_an_impossible_comparison_starts_no_run(released: Machine, arguments: tuple[str, ...], said: str) -> None:
    before = released.data("run", "list")
    done = released.run("run", "start", "nightly", *TARGET, *arguments)
    assert (done.returncode, " ".join(done.stderr.split()).count(said)) == (2, 1), done.stderr
    assert released.data("run", "list") == before


def test_runs_are_listed_by_the_name_of_a_label_alone(released: Machine) -> None:
    listed = {run["id"] for run in released.data("run", "list", "--label", "release")}
    assert {"r0", "r1", "r2"} <= listed
    assert not {"same", "longer"} & listed
    assert (
        "'release' is given twice" in released.run("run", "list", "--label", "release", "--label", "release=1").stderr
    )
