"""The tree of commands: what holds of every one of them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.cli.command_tree import COMMANDS, cliffwatch, context_of
from typer.core import TyperCommand, TyperGroup, TyperOption

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.version import VERSION
from cliffwatch.cli.main import exit_status_of
from cliffwatch.cli.reference import options_of, variable_of
from cliffwatch.model.workload import workload_yaml

FLAGS = [
    pytest.param(words, command, option, id=f"{words} {option.opts[0]}")
    for words, command in COMMANDS.items()
    for option in options_of(command)
]


@pytest.mark.parametrize(("words", "command", "option"), FLAGS)
def test_every_flag_is_long_explained_and_an_environment_variable(
    words: str, command: TyperCommand | TyperGroup, option: TyperOption, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all(name.startswith("--") for name in option.opts)
    assert option.help
    assert option.help.endswith(".")
    monkeypatch.setenv(variable_of(words, option), "from the environment")
    value = option.value_from_envvar(context_of(words))
    # A flag that may be repeated takes several values from its variable, separated by spaces.
    assert (" ".join(value or ()) if option.multiple else value) == "from the environment"


def test_every_command_explains_itself() -> None:
    for words, command in COMMANDS.items():
        assert command.help, words


@pytest.mark.parametrize("words", [(), ("run", "list"), ("run",), ("drive", "attach")])
def test_help_leaves_the_variables_to_the_reference(words: tuple[str, ...]) -> None:
    done = cliffwatch(*words, "--help")
    assert done.returncode == 0
    assert "env var" not in done.stdout
    assert "Options" in done.stdout


def test_the_version_is_a_flag_and_a_command() -> None:
    done = cliffwatch("--version", CLIFFWATCH_VERSION="an image's tag")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"cliffwatch {VERSION}\n", "")
    assert cliffwatch("version").stdout == f"{VERSION}\n"


def test_a_variable_stands_for_a_flag() -> None:
    done = cliffwatch("version", CLIFFWATCH_VERSION_OUTPUT="json")
    assert json.loads(done.stdout) == {"version": VERSION}


def test_a_flag_before_the_command_holds_for_it_and_one_after_it_wins() -> None:
    assert json.loads(cliffwatch("--output", "json", "version").stdout) == {"version": VERSION}
    assert cliffwatch("--output", "json", "version", "--output", "table").stdout == f"{VERSION}\n"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("run", "start", "quick-soak"), "--target"),
        (("run", "list", "--limit", "0"), "--limit"),
        (("run", "list", "--output", "xml"), "--output"),
        (("run", "report", "a", "--format", "pdf"), "--format"),
        (("fly",), "fly"),
        (("--state-directory", "state", "run", "list"), "`cliffwatch up` makes it"),
        (("schedule", "add", "a", "--workload", "b", "--target", "synthetic:c"), "--cron"),
        (
            (
                "schedule",
                "add",
                "a",
                "--workload",
                "b",
                "--target",
                "synthetic:c",
                "--every",
                "1h",
                "--time-zone",
                "UTC",
            ),
            "--time-zone: applies to --cron only",
        ),
        (("--token-file", "nowhere", "run", "list"), "correct --token-file"),
        (("--token-file", sys.executable, "run", "list"), "does not hold a token"),
        (("omb", "import", "nowhere.yaml", "b.yaml"), "nowhere.yaml cannot be read: No such file or directory;"),
        (("drive", "attach", "a", "--capacity", "4"), "--capacity: '4' is not a size"),
        (("workload", "validate", "nowhere.yaml"), "nowhere.yaml"),
        (("down", "--grace", "soon"), "--grace"),
        (("run", "bundle", "."), "is no journal"),
        (("analyze", "."), "is no journal"),
        (("analyze", "nowhere.csv"), "and no path of this name here"),
        (("--url", "localhost:9899", "run", "list"), "write http://localhost:9899"),
    ],
)
def test_bad_usage_is_named_on_stderr_with_status_2(arguments: tuple[str, ...], named: str, tmp_path: Path) -> None:
    done = cliffwatch(*arguments, CLIFFWATCH_STATE_DIRECTORY=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert named in done.stderr
    assert "Traceback" not in done.stderr


def test_an_address_that_is_no_url_is_named() -> None:
    done = cliffwatch("--url", "http://[::1", "run", "list", CLIFFWATCH_TOKEN="any")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("cliffwatch: --url: 'http://[::1' is no URL (")


def test_a_service_that_does_not_answer_is_status_3() -> None:
    done = cliffwatch("--url", "http://127.0.0.1:1", "run", "list", CLIFFWATCH_TOKEN="any")
    assert (done.returncode, done.stdout) == (3, "")
    assert "no service answers at http://127.0.0.1:1" in done.stderr


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (Code.BAD_REQUEST, 2),
        (Code.FORBIDDEN, 2),
        (Code.TARGET_UNSAFE, 2),
        (Code.COMPONENT_MISSING, 3),
        (Code.NOT_READY, 3),
        (Code.INTERNAL, 3),
    ],
)
def test_exit_status_is_2_for_client_errors_and_3_for_service_errors(code: Code, status: int) -> None:
    assert exit_status_of(Problem(code, "any")) == status


def test_a_reader_that_has_enough_is_no_error() -> None:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{sys.executable} -m cliffwatch.cli.reference | head -n 1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "# The `cliffwatch` command\n"


def test_completion_knows_the_commands() -> None:
    done = cliffwatch(COMP_WORDS="cliffwatch sch", COMP_CWORD="1", _CLIFFWATCH_COMPLETE="complete_bash")
    assert done.stdout.split() == ["schedule"]
    done = cliffwatch(COMP_WORDS="cliffwatch run list --state r", COMP_CWORD="4", _CLIFFWATCH_COMPLETE="complete_bash")
    assert done.stdout.split() == ["running", "reporting"]


def test_a_value_that_is_none_of_a_flags_comes_with_the_one_that_was_meant() -> None:
    done = cliffwatch("token", "create", "--name", "bob", "--scope", "reed")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Invalid value for '--scope': 'reed' is not one of 'read', 'operate', 'admin'; did you mean" in done.stderr
    assert "Value error" not in done.stderr
    done = cliffwatch("run", "list", "--state", "runing")
    assert (done.returncode, "; did you mean 'running'?" in done.stderr) == (2, True)


def test_a_workload_is_validated_without_a_service(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("version: 1\nname: mine\nengine: synthetic\nphases: {soak: 1m}\nload: {spread: 0.5}\n")
    done = cliffwatch("workload", "validate", str(path))
    assert (done.returncode, done.stdout) == (0, "")
    path.write_text("version: 1\nname: mine\nengine: synthetic\nphases: {soak: 60}\nlode: {}\n")
    done = cliffwatch("workload", "validate", str(path))
    assert done.returncode == 2
    assert "phases.soak: 60 has no unit" in done.stderr
    assert "lode: unknown key" in done.stderr


def test_a_workload_is_shown_as_one_would_write_it() -> None:
    document = {
        "engine": "fio",
        "load": {"job": "[log]\nrw=write\n\n[lookup]\nrw=read\n"},
        "name": "mine",
        "phases": {"baseline": "1m", "soak": "1h", "warm_up": "10s"},
        "version": 1,
    }
    text = workload_yaml(document)
    assert yaml.safe_load(text) == document
    assert "  job: |\n    [log]\n    rw=write\n\n    [lookup]\n" in text
    shown = ["version:", "name:", "engine:", "warm_up:", "baseline:", "soak:", "load:"]
    assert sorted(shown, key=text.index) == shown


def test_events_that_are_not_there_are_named_without_the_machine_words(tmp_path: Path) -> None:
    path = tmp_path / "windows.csv"
    path.write_text("elapsed_seconds,p99\n0,0.001\n10,0.001\n")
    done = cliffwatch("analyze", str(path), "--events", "nowhere.csv")
    assert done.returncode == 2
    assert "--events: nowhere.csv cannot be read: No such file or directory; correct the path\n" in done.stderr


@pytest.mark.parametrize("token", ["two words", "ä", "a\nb"])
def test_a_token_that_cannot_be_one_is_reported_so(token: str) -> None:
    done = cliffwatch("--url", "http://127.0.0.1:1", "run", "list", CLIFFWATCH_TOKEN=token)
    assert done.returncode == 2
    assert "CLIFFWATCH_TOKEN does not hold a token; a token is one word" in done.stderr


def test_a_state_directory_that_is_a_file_holds_no_service(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    done = cliffwatch("--state-directory", str(file), "status", CLIFFWATCH_LISTEN_PORT="1")
    assert (done.returncode, "Traceback" in done.stderr) == (3, False)
    done = cliffwatch("--state-directory", str(file), "up", CLIFFWATCH_LISTEN_PORT="1")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert f"{file} cannot be made" in done.stderr
