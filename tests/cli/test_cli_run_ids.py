"""Which run is meant: by its id, by the beginning of one, or as the last."""

from pathlib import Path

import pytest
from tests.cli.machine import Done, Machine

from cliffwatch.base.errors import Code, Problem
from cliffwatch.cli.run_id import match_run

IDS = ["soak-3", "soak-30", "nightly-2", "nightly-1"]


@pytest.mark.parametrize(
    ("text", "run"),
    [("soak-3", "soak-3"), ("soak-30", "soak-30"), ("nightly-2", "nightly-2"), ("last", "soak-3")],
)
def test_a_run_is_meant_by_its_id_a_beginning_of_it_or_as_the_last(text: str, run: str) -> None:
    assert match_run(text, IDS) == run
    assert match_run("nightly-1"[:-1] + "1", IDS) == "nightly-1"


def test_a_run_that_is_called_last_is_meant_by_its_name() -> None:
    assert match_run("last", [*IDS, "last"]) == "last"


@pytest.mark.parametrize(
    ("text", "code", "reported"),
    [
        (
            "nightly",
            Code.BAD_REQUEST,
            "'nightly' could be any of 2 runs: nightly-2, nightly-1; use a longer prefix of the id",
        ),
        ("nihgtly-1", Code.NOT_FOUND, "there is no run 'nihgtly-1'; did you mean 'nightly-1'?"),
        ("nihgtly", Code.NOT_FOUND, "there is no run 'nihgtly'; did you mean 'nightly-2'?"),
        ("lasst", Code.NOT_FOUND, "there is no run 'lasst'; did you mean 'last'?"),
        ("x", Code.NOT_FOUND, "`cliffwatch run list` shows those there are"),
        ("", Code.NOT_FOUND, "there is no run ''"),
    ],
)
def test_an_ambiguous_or_unknown_run_id_is_refused_with_candidates(text: str, code: Code, reported: str) -> None:
    with pytest.raises(Problem, match="run") as refused:
        match_run(text, IDS)
    assert refused.value.code is code
    assert reported in refused.value.detail


def test_without_runs_there_is_no_last_one() -> None:
    with pytest.raises(Problem, match="there is no run yet; start one"):
        match_run("last", [])


@pytest.fixture(scope="module")
def with_runs(machine: Machine) -> Machine:
    """A machine with the runs `first-1`, `first-2` and, the last one, `second-1`."""
    path = machine.workload("short", soak="1m")
    for run in ("first-1", "first-2", "second-1"):
        done = machine.run("run", "start", path, "--target", f"synthetic:{run}", "--id", run, "--wait")
        assert done.returncode == 0, done.stderr
    return machine


def report(machine: Machine, run: str, path: Path) -> Done:
    return machine.run("run", "report", run, "--to", str(path))


@pytest.mark.parametrize("run", ["second", "last", "second-1"])
def test_every_command_that_takes_a_run_takes_a_beginning_and_last(
    with_runs: Machine, run: str, tmp_path: Path
) -> None:
    assert with_runs.data("run", "show", run)["id"] == "second-1"
    assert with_runs.run("run", "watch", run).returncode == 0
    assert "second-1" in with_runs.run("run", "stop", run).stderr
    for number, command in enumerate((("report",), ("export", "--format", "analyze"), ("bundle",))):
        to = tmp_path / f"{number}"
        done = with_runs.run("run", command[0], run, *command[1:], "--to", str(to))
        assert done.returncode == 0, done.stderr
        assert to.stat().st_size > 0
    assert with_runs.run("analyze", run).returncode == 0


@pytest.mark.parametrize("command", ["show", "watch", "stop", "report", "export", "bundle"])
def test_every_command_that_takes_a_run_says_which_runs_a_beginning_fits(with_runs: Machine, command: str) -> None:
    done = with_runs.run("run", command, "first")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'first' could be any of 2 runs: first-2, first-1; use a longer prefix of the id" in done.stderr
    done = with_runs.run("run", command, "secnod-1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean 'second-1'?" in done.stderr


def completed(machine: Machine, line: str) -> list[str]:
    """What the shell offers for the last word of `line`."""
    variables = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    return machine.run(**variables, _CLIFFWATCH_COMPLETE="complete_bash").stdout.split()


def test_the_shell_completes_ids_and_names(with_runs: Machine) -> None:
    with_runs.run("workload", "add", with_runs.workload("mine"))
    with_runs.run("schedule", "add", "weekly", "--workload", "mine", "--target", "synthetic:a", "--every", "24h")
    token = with_runs.data("token", "list")[0]["id"]
    runs = {"first-1", "first-2", "second-1"}
    for command in ("show", "watch", "stop", "report", "export", "bundle"):
        assert set(completed(with_runs, f"cliffwatch run {command} ")) == {*runs, "last"}
    assert completed(with_runs, "cliffwatch analyze sec") == ["second-1"]
    assert completed(with_runs, "cliffwatch run start quick") == ["quick-soak"]
    assert set(completed(with_runs, "cliffwatch run start mi")) == {"mine", "mine.yaml"}
    assert completed(with_runs, "cliffwatch run list --workload quick") == ["quick-soak"]
    assert completed(with_runs, "cliffwatch schedule show w") == ["weekly"]
    assert completed(with_runs, f"cliffwatch token revoke {token[:3]}") == [token]
    assert set(completed(with_runs, "cliffwatch run start mine --target d")) == {"directory:", "device:"}
    assert f"directory:{with_runs.directory}/state/" in completed(
        with_runs, f"cliffwatch run start mine --target directory:{with_runs.directory}/s"
    )
    with_runs.run("schedule", "remove", "weekly")


def test_completion_without_the_service_reads_the_journals_and_never_complains(idle: Machine) -> None:
    (idle.state / "runs" / "left").mkdir(parents=True)
    (idle.state / "runs" / "left" / "order.json").write_text("{}")
    assert completed(idle, "cliffwatch run show l") == ["last", "left"]
    done = idle.run(COMP_WORDS="cliffwatch schedule show x", COMP_CWORD="3", _CLIFFWATCH_COMPLETE="complete_bash")
    assert (done.stdout.strip(), done.stderr) == ("", "")
