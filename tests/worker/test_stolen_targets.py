"""The run's own directory is taken away, or another put in its place, while the run goes on."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from testkit.loops import MIB, loop_drive
from testkit.storage_engine import SMALL
from testkit.waiting import wait_until
from testkit.worker_runs import events, names, queue_run, start_worker, status, window_count

from cliffwatch.app.launcher import request_stop
from cliffwatch.gate import examine
from cliffwatch.journal import files
from cliffwatch.model.request import Submission
from cliffwatch.model.run_state import RunState, VerdictName
from cliffwatch.model.target import DirectoryTarget

FIO = {"job": "[w]\nrw=write\nbs=16k\nsize=1m\ndirect=0\nrate_iops=200\n"}
ENGINES: dict[str, dict[str, Any]] = {"fio": FIO, "storage": SMALL}


def begin(tmp_path: Path, engine: str, soak: str = "10m") -> tuple[Path, Path]:
    """The journal of a run that is to write into a directory of another user's, and its own directory there."""
    target = tmp_path / "target"
    target.mkdir()
    os.chown(target, 65534, 65534)
    order = DirectoryTarget(path=str(target))
    journal = queue_run(tmp_path / "run", ENGINES[engine], order, engine=engine, window="1s", phases={"soak": soak})
    return journal, target / "cliffwatch-run"


@contextmanager
def working(journal: Path) -> Iterator["subprocess.Popen[bytes]"]:
    worker = start_worker(journal)
    try:
        wait_until(lambda: window_count(journal) >= 1, "the first window")
        yield worker
    finally:
        worker.kill()
        worker.wait()


def kill_engine(journal: Path) -> None:
    engine = json.loads((journal / files.WORKER).read_text())["engine"]
    os.killpg(engine["pid"], signal.SIGKILL)


def messages(journal: Path, name: str) -> list[str]:
    return [str(event.detail["message"]) for event in events(journal) if event.name == name]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_link_in_the_place_of_the_run_s_directory_is_not_followed(tmp_path: Path, engine: str) -> None:
    journal, directory = begin(tmp_path, engine)
    precious, moved = tmp_path / "precious", tmp_path / "target" / "moved"
    precious.mkdir()
    (precious / "data").write_text("data")
    with working(journal) as worker:
        directory.rename(moved)
        directory.symlink_to(precious)
        if engine == "fio":
            # What is started there must not take its modules from there. The other one refuses what is not its own.
            (moved / "cliffwatch.py").write_text("raise SystemExit('imported from the target')")
        before = window_count(journal)
        kill_engine(journal)
        wait_until(
            lambda: names(journal, "engine").count("started") == 2 and window_count(journal) > before, "the next"
        )
        request_stop(journal, False)
        assert worker.wait(120) == 0
    assert [(entry.name, entry.read_text()) for entry in precious.iterdir()] == [("data", "data")]
    # What the run wrote is removed where it is now.
    assert [entry.name for entry in moved.iterdir()] == [".cliffwatch-run"]
    assert any("was moved there" in message for message in messages(journal, "files_left_behind"))


def test_a_run_whose_directory_was_removed_ends_and_says_so(tmp_path: Path) -> None:
    journal, directory = begin(tmp_path, "storage")
    with working(journal) as worker:
        shutil.rmtree(directory)
        assert worker.wait(120) == 0
    finished = status(journal)
    assert (finished.state, finished.verdict) == (RunState.FINISHED, VerdictName.FAILED)
    assert any("target.path" in reason and "was removed" in reason for reason in finished.reasons), finished.reasons
    assert not directory.exists()


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_an_engine_that_does_not_notice_that_its_files_were_taken_away_has_a_worker_that_does(
    tmp_path: Path, how: str
) -> None:
    journal, directory = begin(tmp_path, "fio", soak="5s")
    with working(journal) as worker:
        if how == "removed":
            shutil.rmtree(directory)
        else:
            directory.rename(tmp_path / "elsewhere")
            directory.mkdir()
            (directory / "precious").write_text("data")
        assert worker.wait(120) == 0
    finished = status(journal)
    assert finished.state is RunState.FINISHED
    assert not any("failed permanently" in reason for reason in finished.reasons), finished.reasons
    said = f"{directory} was removed" if how == "removed" else f"{directory} was moved to {tmp_path / 'elsewhere'}"
    assert messages(journal, "target_displaced") == [said]
    assert any(f"taken away under the load: {said}" in reason for reason in finished.reasons), finished.reasons
    assert (directory / "precious").exists() is (how == "replaced")


def test_a_link_that_leads_elsewhere_than_when_the_run_was_asked_for_is_not_followed(tmp_path: Path) -> None:
    first, second, link = tmp_path / "first", tmp_path / "second", tmp_path / "link"
    for place in (first, second):
        place.mkdir()
    link.symlink_to(first)
    # As the service records it of a request that it accepts.
    asked = Submission("", "", target_path=str(first))
    target = DirectoryTarget(path=str(link))
    journal = queue_run(tmp_path / "run", FIO, target, engine="fio", phases={"soak": "10m"}, submission=asked)
    link.unlink()
    link.symlink_to(second)
    assert start_worker(journal).wait(120) == 0
    finished = status(journal)
    assert finished.verdict is VerdictName.FAILED
    assert any(f"{link} led to {first}" in reason and "target" in reason for reason in finished.reasons)
    assert list(first.iterdir()) == list(second.iterdir()) == []


def test_another_file_under_the_confirmed_name_is_not_erased(tmp_path: Path) -> None:
    file = tmp_path / "drive.img"
    with loop_drive(file) as drive:
        # As the service records it of a request that it accepts.
        asked = Submission("", "", target_blocks=examine(drive.target(), "run").blocks)
    file.rename(tmp_path / "moved.img")
    with loop_drive(file) as drive:
        with drive.node.open("r+b") as device:
            device.seek(MIB)
            device.write(b"data that no tool knows")
        before = drive.digest()
        phases = {"soak": "5s"}
        journal = queue_run(tmp_path / "run", FIO, drive.target(), engine="fio", phases=phases, submission=asked)
        assert start_worker(journal).wait(120) == 0
        finished = status(journal)
        assert finished.verdict is VerdictName.FAILED
        assert any(f"{file} was another drive when the run was asked for" in reason for reason in finished.reasons)
        assert drive.digest() == before
