"""The run's own directory is taken away, or another put in its place, while the run goes on."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from testkit.loops import MIB, command, loop_drive, mounted
from testkit.storage_engine import SMALL
from testkit.waiting import wait_until
from testkit.worker_runs import events, names, queue_run, start_worker, status, window_count

from cliffwatch.app.launcher import request_stop
from cliffwatch.gate import directory_of, examine, is_same_directory, shares_a_drive
from cliffwatch.journal import EventLog, files
from cliffwatch.journal.state import change_state
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


def remove(directory: Path) -> None:
    """Beside a load that makes and deletes files in it."""

    def gone() -> bool:
        shutil.rmtree(directory, ignore_errors=True)
        return not directory.exists()

    wait_until(gone, "the end of the directory")


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
        remove(directory)
        assert worker.wait(120) == 0
    finished = status(journal)
    assert (finished.state, finished.verdict) == (RunState.FINISHED, VerdictName.FAILED)
    assert any("target.path" in reason and "was removed" in reason for reason in finished.reasons), finished.reasons
    assert not directory.exists()


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_an_engine_that_does_not_notice_that_its_files_were_taken_away_has_a_worker_that_does(
    tmp_path: Path, how: str
) -> None:
    journal, directory = begin(tmp_path, "fio")
    with working(journal) as worker:
        if how == "removed":
            remove(directory)
        else:
            directory.rename(tmp_path / "elsewhere")
            directory.mkdir()
            (directory / "precious").write_text("data")
        wait_until(lambda: messages(journal, "target_displaced"), "the worker has seen it")
        request_stop(journal, False)
        assert worker.wait(120) == 0
    finished = status(journal)
    assert finished.state is RunState.FINISHED
    assert not any("failed permanently" in reason for reason in finished.reasons), finished.reasons
    said = f"{directory} was removed" if how == "removed" else f"{directory} was moved to {tmp_path / 'elsewhere'}"
    assert messages(journal, "target_displaced") == [said]
    assert any(f"taken away under the load: {said}" in reason for reason in finished.reasons), finished.reasons
    assert (directory / "precious").exists() is (how == "replaced")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_mount_in_the_run_directory_is_reported_and_no_engine_is_started_on_it(tmp_path: Path, engine: str) -> None:
    journal, directory = begin(tmp_path, engine)
    precious = tmp_path / "precious"
    precious.write_text("data")
    with working(journal) as worker:
        inside = next(path for path in directory.rglob("*") if path.is_file() and path.stat().st_size > 0)
        command("mount", "--bind", precious, inside)
        try:
            wait_until(lambda: messages(journal, "target_displaced"), "the worker has seen the mount")
            kill_engine(journal)
            assert worker.wait(60) == 0
        finally:
            command("umount", inside)
    assert precious.read_text() == "data"
    assert messages(journal, "target_displaced") == [f"{inside} was mounted in {directory}"]
    finished = status(journal)
    assert finished.verdict is VerdictName.FAILED
    assert any(f"{inside} is mounted in {directory}" in reason for reason in finished.reasons), finished.reasons
    assert names(journal, "engine").count("started") == 1


def test_a_file_system_that_was_unmounted_under_the_load_is_said_to_be(tmp_path: Path) -> None:
    with loop_drive(tmp_path / "volume.img", 256 * MIB) as drive:
        command("mkfs.ext4", "-q", drive.node)
        (tmp_path / "volume").mkdir()
        command("mount", drive.node, tmp_path / "volume")
        journal = queue_run(
            tmp_path / "run",
            FIO,
            DirectoryTarget(path=str(tmp_path / "volume")),
            engine="fio",
            window="1s",
            phases={"soak": "5s", "cool_down": "0s"},
        )
        with working(journal) as worker:
            command("umount", "--lazy", tmp_path / "volume")
            assert worker.wait(120) == 0
    (said,) = messages(journal, "target_displaced")
    assert said.startswith(f"the file system of {tmp_path / 'volume'}/")
    assert said.endswith(" was unmounted")
    assert messages(journal, "files_left_behind") == []


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


@pytest.mark.parametrize("begun", [True, False], ids=["resumed", "queued"])
def test_a_directory_whose_file_system_is_not_mounted_any_more_is_another_one(tmp_path: Path, begun: bool) -> None:
    """The path may be there on the file system below, where there may be no room, and another drive."""
    place = tmp_path / "volume"
    target = DirectoryTarget(path=str(place / "data"))
    (place / "data").mkdir(parents=True)
    with loop_drive(tmp_path / "volume.img", 64 * MIB) as drive:
        command("mkfs.ext4", "-q", drive.node)
        with mounted(drive.node, place):
            (place / "data").mkdir()
            asked = Submission("", "", target_directory=directory_of(examine(target, "run")))
            phases = {"soak": "10m"}
            journal = queue_run(
                tmp_path / "run", FIO, target, engine="fio", window="1s", phases=phases, submission=asked
            )
            if begun:
                with working(journal):
                    pass
                # As the service does before it starts another worker.
                for state in (RunState.INTERRUPTED, RunState.STARTING):
                    change_state(EventLog(journal), state, time.time())
        assert start_worker(journal).wait(120) == 0
    finished = status(journal)
    assert finished.verdict is VerdictName.FAILED
    assert any(f"{place / 'data'} was another directory" in reason for reason in finished.reasons), finished.reasons
    assert list((place / "data").iterdir()) == []


def test_a_copy_of_the_drive_in_its_place_is_another_one(tmp_path: Path) -> None:
    """It has the UUID of the file system, and the births of all that is in it."""
    place, image = tmp_path / "volume", tmp_path / "volume.img"
    target = DirectoryTarget(path=str(place))
    with loop_drive(image, 64 * MIB) as drive:
        command("mkfs.ext4", "-q", drive.node)
        with mounted(drive.node, place):
            before = examine(target, "run")
            asked = Submission("", "", target_directory=directory_of(before), target_blocks=before.blocks)
    journal = queue_run(tmp_path / "run", FIO, target, engine="fio", phases={"soak": "5s"}, submission=asked)
    copy = Path(shutil.copy(image, tmp_path / "copy.img"))
    # As one that is attached anew: its numbers may be other ones then.
    with loop_drive(image) as drive, mounted(drive.node, place):
        assert shares_a_drive(before.blocks or "", examine(target, "run").blocks or "")
    with loop_drive(copy) as drive, mounted(drive.node, place):
        assert is_same_directory(asked.target_directory or "", directory_of(examine(target, "run")) or "")
        assert start_worker(journal).wait(120) == 0
        assert [entry.name for entry in place.iterdir()] == ["lost+found"]
    finished = status(journal)
    assert finished.verdict is VerdictName.FAILED
    assert any(f"{place} was on another drive" in reason for reason in finished.reasons), finished.reasons


@pytest.mark.parametrize(
    ("asked", "present", "is_shared"),
    [
        ("S1 wwn-1 512 bytes", "S1 wwn-1 1024 bytes", True),
        ("S1 512 bytes; S2 512 bytes", "S2 512 bytes; S3 512 bytes", True),
        ("S1 512 bytes; S2 512 bytes", "S3 512 bytes; S4 512 bytes", False),
        ("512 bytes", "S3 512 bytes", True),
        ("file 12 of 8:1 born 2026-01-01T00:00:00.1Z 512 bytes", "file 12 of 8:1 of unknown birth 512 bytes", True),
        (
            "file 12 of 8:1 born 2026-01-01T00:00:00.1Z 512 bytes",
            "file 13 of 259:1 born 2026-01-01T00:00:00.1Z 512 bytes",
            True,
        ),
        (
            "file 12 of 8:1 born 2026-01-01T00:00:00.1Z from byte 512 512 bytes",
            "file 12 of 8:1 born 2026-01-01T00:00:00.2Z from byte 512 512 bytes",
            False,
        ),
    ],
)
def test_drives_are_known_by_what_lasts(asked: str, present: str, is_shared: bool) -> None:
    assert shares_a_drive(asked, present) is is_shared


def test_a_file_system_that_was_made_in_the_same_second_is_another_one(tmp_path: Path) -> None:
    """The roots of both have inode 2, and births in whole seconds."""
    place = tmp_path / "volume"
    target = DirectoryTarget(path=str(place))
    with loop_drive(tmp_path / "one.img", 64 * MIB) as one, loop_drive(tmp_path / "two.img", 64 * MIB) as two:
        # As a clock that stands still would have it.
        for drive in (one, two):
            command("env", "E2FSPROGS_FAKE_TIME=1790000000", "mkfs.ext4", "-q", drive.node)
        with mounted(one.node, place):
            asked = directory_of(examine(target, "run"))
        with mounted(one.node, place):
            assert is_same_directory(asked or "", directory_of(examine(target, "run")) or "")
        with mounted(two.node, place):
            found = directory_of(examine(target, "run"))
    assert asked is not None
    assert found is not None
    assert asked.partition(" of ")[0] == found.partition(" of ")[0]
    assert not is_same_directory(asked, found)
    assert is_same_directory(asked.partition(" of ")[0], found), "an earlier version wrote down no file system"


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


def test_an_engine_is_not_started_again_on_a_drive_that_was_mounted_by_another_name_meanwhile(tmp_path: Path) -> None:
    with loop_drive(tmp_path / "drive.img") as drive:
        journal = queue_run(tmp_path / "run", FIO, drive.target(), engine="fio", window="1s", phases={"soak": "10m"})
        with working(journal) as worker:
            # Beyond what the engine writes, so that the file system stays whole.
            twin = Path(command("losetup", "--find", "--show", "--offset", str(16 * MIB), drive.file).strip())
            try:
                command("mkfs.ext4", "-q", twin)
                with mounted(twin, tmp_path / "mounted") as mount_point:
                    kill_engine(journal)
                    assert worker.wait(60) == 0
            finally:
                command("losetup", "--detach", twin)
    finished = status(journal)
    assert finished.verdict is VerdictName.FAILED
    assert any(f"{twin.name} is mounted at {mount_point}" in reason for reason in finished.reasons), finished.reasons
    assert names(journal, "engine").count("started") == 1
    assert len(messages(journal, "refused")) == 1


def test_a_drive_that_is_used_while_an_engine_waits_for_its_window_is_not_written_to(tmp_path: Path) -> None:
    with loop_drive(tmp_path / "drive.img", 43 * MIB) as drive:
        journal = queue_run(tmp_path / "run", FIO, drive.target(), engine="fio", window="12s", phases={"soak": "10m"})
        with working(journal) as worker:
            kill_engine(journal)
            wait_until(lambda: "died" in names(journal, "engine"), "the engine is missed")
            # The next one begins with the next window, in some ten seconds.
            time.sleep(3.0)
            with loop_drive(drive.file) as twin:
                command("mkfs.ext4", "-q", twin.node)
                with mounted(twin.node, tmp_path / "mounted"):
                    assert worker.wait(60) == 0
    finished = status(journal)
    assert finished.verdict is VerdictName.FAILED
    assert any("is mounted at" in reason for reason in finished.reasons), finished.reasons
    assert names(journal, "engine").count("started") == 1


def test_an_engine_is_started_again_on_a_drive_without_other_users(tmp_path: Path) -> None:
    with loop_drive(tmp_path / "drive.img") as drive:
        journal = queue_run(tmp_path / "run", FIO, drive.target(), engine="fio", window="1s", phases={"soak": "10m"})
        # Looked at by another name, it is not used by it.
        with working(journal) as worker, loop_drive(drive.file):
            kill_engine(journal)
            wait_until(lambda: names(journal, "engine").count("started") == 2, "the second engine")
            request_stop(journal, False)
            assert worker.wait(60) == 0
    assert messages(journal, "refused") == []


def test_a_file_that_has_the_confirmed_one_s_name_and_inode_number_is_not_erased(tmp_path: Path) -> None:
    with loop_drive(tmp_path / "volume.img", 96 * MIB) as below:
        command("mkfs.ext4", "-q", below.node)
        with mounted(below.node, tmp_path / "volume") as volume:
            file = volume / "drive.img"
            with loop_drive(file) as drive:
                asked = Submission("", "", target_blocks=examine(drive.target(), "run").blocks)
            inode = file.stat().st_ino
            file.unlink()
            with loop_drive(file) as drive:
                assert file.stat().st_ino == inode
                with drive.node.open("r+b") as device:
                    device.seek(MIB)
                    device.write(b"data that no tool knows")
                before = drive.digest()
                journal = queue_run(
                    tmp_path / "run", FIO, drive.target(), engine="fio", phases={"soak": "5s"}, submission=asked
                )
                assert start_worker(journal).wait(120) == 0
                reasons = status(journal).reasons
                assert any(f"{file} was another drive when the run was asked for" in reason for reason in reasons), (
                    reasons
                )
                assert drive.digest() == before
