"""`cliffwatch run label|note|pin|again|delete` and runs by label, against a real service."""

import re

import pytest
from tests.cli.machine import Machine

from cliffwatch.model.annotations import LABELS_LIMIT

MANY = [f"label-{number}=x" for number in range(LABELS_LIMIT + 1)]
TARGET = ("--target", "synthetic:one")


@pytest.fixture(scope="module")
def kept(machine: Machine) -> Machine:
    """A service with a run `kept` that is over and has a label."""
    labelled = ("--label", "release=26.1")
    done = machine.run("run", "start", machine.workload("kept"), *TARGET, "--id", "kept", *labelled, "--wait")
    assert done.returncode == 0, done.stderr
    return machine


def test_labels_and_notes_are_shown_and_found(kept: Machine) -> None:
    assert kept.run("run", "label", "kept", "drive=A 1", "release=26.2").stderr == (
        "run kept: drive=A 1, release=26.2; not pinned\n"
    )
    assert "no label" not in kept.run("run", "label", "kept", "--remove", "release").stderr
    assert "note: run kept had no label release" in kept.run("run", "label", "kept", "--remove", "release").stderr
    assert kept.run("run", "note", "last", "new firmware").returncode == 0
    facts = kept.run("run", "show", "kept").stdout
    assert "drive=A 1" in facts
    assert "new firmware" in facts
    assert [run["id"] for run in kept.data("run", "list", "--label", "drive=A 1")] == ["kept"]
    none = kept.run("run", "list", "--label", "release=26.2")
    assert none.stderr == "no run matches; without --state, --workload, --verdict and --label it is all of them\n"
    assert "drive=A 1" in kept.run("run", "list").stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "label", "kept", "release"), "NAME=VALUE: 'release' is not a label; write name=value"),
        (("run", "label", "kept", "Release=1"), "NAME=VALUE.Release: "),
        (("run", "label", "kept", *MANY), f"NAME=VALUE: is too long; write at most {LABELS_LIMIT} items"),
        (("run", "mark", "kept", "pulled a drive", "--from", "noon", "--to", "2026-11-26T12:00:00Z"), "--from: 'noon'"),
        (("run", "label", "kept"), "give a label to set"),
        (("run", "label", "kept", "a=1", "a=2"), "NAME=VALUE: 'a' is given twice"),
        (("run", "label", "kept", "a=1", "--remove", "a"), "--remove: 'a' is to be set, too"),
        (("run", "list", "--label", "=x"), "--label: '=x' is not a label"),
        (("run", "start", "kept", *TARGET, "--label", "x"), "--label: 'x' is not a label"),
        (("run", "delete", "kept"), "--yes: say so where you cannot be asked"),
        (("run", "again", "kept", "--confirm", "x"), "1 are given for 0 devices"),
        (("run", "again", "kept", "--junit", "out.xml"), "--junit: there is no result before the run is over"),
    ],
)
def test_a_wrong_argument_is_named_in_the_error(kept: Machine, arguments: tuple[str, ...], said: str) -> None:
    done = kept.run(*arguments)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_a_run_is_started_again_with_its_labels(kept: Machine) -> None:
    kept.run("run", "label", "kept", "again=yes")
    assert "would write" in kept.run("run", "again", "kept", "--dry-run").stdout
    done = kept.run("run", "again", "kept", "--wait")
    assert done.returncode == 0, done.stderr
    newest, before = kept.data("run", "list", "--label", "again=yes")
    assert before["id"] == "kept"
    assert newest["workload"] == before["workload"]
    assert newest["target"] == before["target"]


def test_a_drill_is_not_started_again_on_its_deleted_drive(kept: Machine) -> None:
    labelled = ("--label", "drill=trim")
    kept.run("run", "start", kept.workload("drilled"), *TARGET, "--id", "drilled", *labelled, "--wait")
    done = kept.run("run", "again", "drilled")
    assert (done.returncode, "cliffwatch drill --variant trim" in done.stderr) == (2, True), done.stderr


def test_two_runs_are_compared(kept: Machine) -> None:
    path = kept.workload("kept", soak="40m")
    kept.run("run", "start", path, *TARGET, "--id", "longer", "--wait")
    printed = kept.run("run", "diff", "kept", "longer").stdout.splitlines()
    assert printed[0].split() == ["RESULT", "kept", "longer", "RATIO"]
    assert ["phases.soak", "30m", "40m"] in [line.split() for line in printed]
    assert "TARGETS  the same" in printed
    assert "ENVIRONMENT  the same" in printed
    assert kept.data("run", "diff", "kept", "last")["workload"] == [
        {"place": "phases.soak", "first": "30m", "second": "40m", "ratio": None, "change": None}
    ]


def test_a_run_that_is_pinned_is_kept(kept: Machine) -> None:
    assert kept.run("run", "pin", "kept").stderr.endswith("; pinned\n")
    refused = kept.run("run", "delete", "kept", "--yes")
    assert (refused.returncode, "cliffwatch run unpin kept" in refused.stderr) == (2, True), refused.stderr
    assert kept.run("run", "unpin", "kept").returncode == 0
    assert kept.data("run", "delete", "kept", "--yes") == {"id": "kept", "deleted": True}
    assert "kept" not in [run["id"] for run in kept.data("run", "list")]


def test_a_schedule_shows_the_labels_of_its_runs(machine: Machine) -> None:
    when = ("--workload", machine.workload("nightly"), *TARGET, "--cron", "0 3 * * *")
    also = ("--label", "release=26.1", "--soak", "20m")
    assert machine.run("schedule", "add", "nightly", *when, *also).returncode == 0
    shown = machine.run("schedule", "show", "nightly").stdout
    assert "release=26.1" in shown
    assert re.search(r"^lengths +soak 20m$", shown, re.MULTILINE), shown
