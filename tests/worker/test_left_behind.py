"""Files of a run whose worker was gone while the name of its target came to lead elsewhere."""

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from testkit.loops import MIB, command, loop_drive, mounted
from testkit.waiting import wait_until
from testkit.worker_runs import events, queue_run, start_worker, status, window_count

from cliffwatch.app.launcher import request_stop
from cliffwatch.journal import EventLog
from cliffwatch.journal.events import CLAIMED
from cliffwatch.journal.state import change_state
from cliffwatch.model.request import Submission
from cliffwatch.model.run_state import RunState
from cliffwatch.model.target import DirectoryTarget

FIO = {"job": "[w]\nrw=write\nbs=16k\nsize=1m\ndirect=0\nrate_iops=200\n"}


def begin(tmp_path: Path, target: Path, soak: str = "10m") -> Path:
    """The journal of a run whose worker was killed after its first window."""
    asked = Submission("", "", target_path=str(target.resolve()))
    journal = queue_run(
        tmp_path / "run",
        FIO,
        DirectoryTarget(path=str(target)),
        engine="fio",
        window="1s",
        phases={"soak": soak},
        submission=asked,
    )
    worker = start_worker(journal)
    wait_until(lambda: window_count(journal) >= 1, "the first window")
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    # As the service does before it starts another worker.
    for state in (RunState.INTERRUPTED, RunState.STARTING):
        change_state(EventLog(journal), state, time.time())
    return journal


def finish(journal: Path) -> None:
    """Let another worker go on, and stop it once it has begun."""
    worker = start_worker(journal)
    request_stop(journal, False)
    assert worker.wait(120) == 0
    assert status(journal).state is RunState.FINISHED


def left_behind(journal: Path) -> list[dict[str, Any]]:
    return [event.detail for event in events(journal) if event.name == "files_left_behind"]


@pytest.mark.parametrize("ends", ["refused", "stopped"])
def test_files_are_removed_where_they_were_made_when_the_link_leads_elsewhere(tmp_path: Path, ends: str) -> None:
    first, second, link = tmp_path / "first", tmp_path / "second", tmp_path / "link"
    for place in (first, second):
        place.mkdir()
    link.symlink_to(first)
    journal = begin(tmp_path, link)
    assert [entry.name for entry in first.iterdir()] == ["cliffwatch-run"]
    link.unlink()
    link.symlink_to(second)
    if ends == "refused":
        assert start_worker(journal).wait(120) == 0
    else:
        finish(journal)
    assert list(first.iterdir()) == list(second.iterdir()) == []
    assert left_behind(journal) == []


def test_files_on_a_file_system_that_is_not_mounted_any_more_are_named(tmp_path: Path) -> None:
    with loop_drive(tmp_path / "volume.img", 64 * MIB) as drive:
        command("mkfs.ext4", "-q", drive.node)
        with mounted(drive.node, tmp_path / "volume") as volume:
            journal = begin(tmp_path, volume, soak="3s")
            directory = volume / "cliffwatch-run"
            # Its engine ends soon after its worker.
            wait_until(lambda: subprocess.run(["umount", volume], check=False).returncode == 0, "an unused volume")
            try:
                # Its time is over by then: no directory is made anew.
                load_stop = status(journal).load_stop
                assert load_stop is not None
                wait_until(lambda: time.time() > load_stop, "the end of the load")
                assert start_worker(journal).wait(120) == 0
            finally:
                command("mount", drive.node, volume)
            [left] = left_behind(journal)
            assert left["path"] == str(directory)
            assert "is not mounted" in left["message"]
            assert f"inode {directory.stat().st_ino} born " in left["message"]
            assert (directory / ".cliffwatch-run").exists()


def test_files_of_an_earlier_worker_are_named_when_a_later_one_made_a_directory_in_their_place(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    journal = begin(tmp_path, target)
    directory, moved = target / "cliffwatch-run", tmp_path / "moved"
    directory.rename(moved)
    worker = start_worker(journal)
    before = window_count(journal)
    wait_until(lambda: window_count(journal) > before, "a window of the second worker")
    request_stop(journal, False)
    assert worker.wait(120) == 0
    assert not directory.exists()
    assert [left["path"] for left in left_behind(journal)] == [str(directory)]
    assert f"inode {moved.stat().st_ino} " in left_behind(journal)[0]["message"]


def test_a_run_that_made_no_directory_left_none_behind(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    journal = queue_run(tmp_path / "run", FIO, DirectoryTarget(path=str(target)), engine="fio", phases={"soak": "10m"})
    request_stop(journal, False)
    assert start_worker(journal).wait(120) == 0
    assert left_behind(journal) == []


def test_a_journal_of_before_names_the_directory_that_the_run_was_in(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    journal = begin(tmp_path, target)
    log = journal / "events.jsonl"
    log.write_text("".join(line for line in log.read_text().splitlines(True) if CLAIMED not in line))
    (target / "cliffwatch-run").rename(tmp_path / "moved")
    finish(journal)
    assert [left["path"] for left in left_behind(journal)] == [str(target / "cliffwatch-run")]
