"""From flags to an order: every fault names the flag, and nothing is guessed."""

import io
from pathlib import Path

import pytest
from tests.cli.command_tree import cliffwatch

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.cli.run_request import (
    ask_for_confirmation,
    checked_id,
    duration_overrides,
    print_plan,
    target_document,
    workload_reference,
)


def test_a_name_stays_a_name_and_a_path_becomes_the_document(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("version: 1\nname: mine\n")
    assert workload_reference("quick-soak@2") == "quick-soak@2"
    assert workload_reference(str(path)) == {"version": 1, "name": "mine"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"- a\n", "does not hold a YAML mapping"),
        (b"version: 1\n\tname: mine\n", "is not YAML: line 2, column 1: found character"),
        (b"\xff\xfe\xff", "cannot be read: it is not UTF-8 text"),
    ],
)
def test_a_file_that_is_no_workload_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(Problem, match=message) as caught:
        workload_reference(str(path))
    assert str(path) in caught.value.detail


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(Problem, match=r"nowhere\.yaml cannot be read: No such file or directory; correct the path$"):
        workload_reference("nowhere.yaml")


def test_a_directory_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    assert target_document("directory:data", None) == {"kind": "directory", "path": str(tmp_path / "data")}


def test_a_device_carries_its_confirmation() -> None:
    assert target_document("device:S123", "erase S123") == {
        "kind": "device",
        "identity": "S123",
        "confirmation": "erase S123",
    }


@pytest.mark.parametrize("text", ["", "directory:", "directory", "tape:1"])
def test_a_target_that_cannot_be_understood_says_how_to_write_one(text: str) -> None:
    with pytest.raises(
        Problem,
        match="device:SERIAL, synthetic:NAME, broker:HOST:PORT, postgres://USER@HOST:PORT/DATABASE or observed:NAME",
    ) as caught:
        target_document(text, None)
    assert caught.value.code is Code.BAD_REQUEST


def test_only_a_device_is_confirmed() -> None:
    with pytest.raises(Problem) as caught:
        target_document("synthetic:a", "yes")
    assert caught.value.faults == [FieldFault("--confirm", "applies to devices only; omit it")]


def test_durations_that_were_given_are_passed_on_and_faults_name_their_flags() -> None:
    assert duration_overrides(soak="3m", warm_up=None) == {"soak": "3m"}
    with pytest.raises(Problem) as caught:
        duration_overrides(soak="3", warm_up="long", window="1s")
    assert [fault.field for fault in caught.value.faults] == ["--soak", "--warm-up"]


@pytest.mark.parametrize("run_id", ["../x", "A b", "", "x" * 64])
def test_an_id_that_cannot_be_a_runs_is_refused_by_its_flag(run_id: str) -> None:
    assert checked_id("soak-3") == "soak-3"
    with pytest.raises(Problem) as caught:
        checked_id(run_id)
    (fault,) = caught.value.faults
    assert fault.field == "--id"
    assert fault.message
    done = cliffwatch("run", "start", "quick-soak", "--target", "synthetic:a", "--id", run_id)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("cliffwatch: the run's id is not valid\n  --id: ")


def test_a_plan_says_what_would_be_written_where(capsys: pytest.CaptureFixture[str]) -> None:
    print_plan(
        {
            "writes": [{"path": "/mnt/test/run/a", "size_bytes": 1024**3}],
            "command": ["fio", "job.fio"],
            "written_bytes": None,
            "notes": ["buffered"],
            "objections": [{"code": "reserve", "message": "too little space would stay free"}],
            "confirmation": None,
        }
    )
    assert capsys.readouterr().out.splitlines() == [
        "would write  /mnt/test/run/a  1.0 GiB at most",
        "in all       not bounded: as fast as the target takes it",
        "command      fio job.fio",
        "note         buffered",
        "objection    too little space would stay free (reserve)",
    ]


def test_a_plan_reports_what_is_written_over_and_over_from_the_files(capsys: pytest.CaptureFixture[str]) -> None:
    print_plan({"writes": [{"path": "/mnt/test/run/a", "size_bytes": 1024**3}], "written_bytes": 5 * 1024**3})
    assert "in all       5.0 GiB in the whole run" in capsys.readouterr().out.splitlines()


def test_a_plan_for_brokers_does_not_say_that_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    print_plan({"writes": [], "written_bytes": 1024**3})
    assert capsys.readouterr().out.startswith("would write  no file and no drive of this machine itself\n")
    print_plan({"writes": [], "written_bytes": 0})
    assert capsys.readouterr().out.startswith("would write  nothing\n")


class Terminal(io.StringIO):
    """Input that is typed at a terminal."""

    def isatty(self) -> bool:
        return True


def test_at_a_terminal_the_sentence_is_typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("erase S123\n"))
    plan = {"writes": [{"path": "/dev/sdz", "size_bytes": 1024}], "command": [], "confirmation": "erase S123"}
    assert ask_for_confirmation(plan, "erase S123") == "erase S123"
    shown = capsys.readouterr()
    assert "would write  /dev/sdz" in shown.out
    assert "Everything on this device will be lost" in shown.err


def test_the_end_of_input_confirms_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(""))
    assert ask_for_confirmation({"writes": [], "command": [], "confirmation": "erase S123"}, "erase S123") == ""


def test_without_a_terminal_the_sentence_has_to_come_with_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(Problem, match="--confirm 'erase S123'"):
        ask_for_confirmation({"writes": [], "command": [], "confirmations": ["erase S123"]}, "erase S123")
    assert "confirm      erase S123" in capsys.readouterr().out
