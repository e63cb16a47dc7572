"""Runs of the real fio, executed by a real worker on a directory and on a loop device."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from testkit.loops import MIB, command, loop_drive, mounted
from testkit.worker_runs import execute_run, names, queue_run, report

from cliffwatch.gate import confirmation_sentence, examine
from cliffwatch.journal import JournalReader
from cliffwatch.model.run_state import VerdictName
from cliffwatch.model.target import DeviceTarget, DirectoryTarget

DIRECT_WRITES = "[w]\nrw=write\nbs=16k\nsize=16m\ndirect=1\nfdatasync=1\nrate_iops=200\n"
CACHED_READS = "[r]\nrw=randread\nbs=4k\nsize=16m\ndirect=0\ninvalidate=0\nrate_iops=5000\n"
#: The same megabyte over and over: in the page cache, it is written out once in many times, if at all.
REWRITES = "[w]\nrw=write\nbs=16k\nsize=1m\ndirect=0\ninvalidate=0\nrate_iops=400\n"
#: Writes past the page cache, some 50 MiB a second, until it is killed.
OTHER_WRITER = """
import mmap, os, sys, time
file, buffer = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_DIRECT), mmap.mmap(-1, 1 << 20)
while True:
    for offset in range(0, 128 << 20, 1 << 20):
        os.pwrite(file, buffer, offset)
        time.sleep(0.02)
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    place = tmp_path / "target"
    place.mkdir()
    return place


def queue_fio(
    tmp_path: Path, job: str, target: DirectoryTarget | DeviceTarget, soak: str = "15s", warm_up: str = "0s"
) -> Path:
    phases = {"warm_up": warm_up, "soak": soak}
    return queue_run(tmp_path / "fio-run", {"job": job}, target, engine="fio", window="1s", phases=phases)


def test_a_run_that_reaches_the_drive_passes_and_leaves_nothing(tmp_path: Path, directory: Path) -> None:
    journal = queue_fio(tmp_path, DIRECT_WRITES, DirectoryTarget(path=str(directory)))
    assert execute_run(journal).verdict is VerdictName.PASS
    windows = list(JournalReader(journal).windows())
    written = sum(window.counters["written_bytes"] for window in windows)
    on_device = sum(window.counters["device_written_bytes"] for window in windows)
    assert 0 < written <= on_device / 0.9
    assert {"write", "sync"} <= set(windows[5].latency)
    assert list(directory.iterdir()) == []


def test_a_run_that_the_page_cache_served_is_invalid_and_says_so(tmp_path: Path, directory: Path) -> None:
    journal = queue_fio(tmp_path, CACHED_READS, DirectoryTarget(path=str(directory)), soak="5s")
    finished = execute_run(journal)
    assert finished.verdict is VerdictName.INVALID
    assert any("page cache" in reason for reason in report(journal)["verdict"]["reasons"])


def test_blocks_below_a_drives_sectors_end_the_run_at_once_and_say_so(tmp_path: Path) -> None:
    """The job is valid for drives of 512 bytes, and this one has 4,096."""
    (tmp_path / "drive.img").write_bytes(b"")
    os.truncate(tmp_path / "drive.img", 64 * MIB)
    node = Path(command("losetup", "--find", "--show", "--sector-size", "4096", tmp_path / "drive.img").strip())
    try:
        command("mkfs.ext4", "-q", node)
        with mounted(node, tmp_path / "mount") as place:
            job = "[w]\nrw=write\nbs=512\nsize=16m\ndirect=1\nrate_iops=200\n"
            journal = queue_fio(tmp_path, job, DirectoryTarget(path=str(place)))
            finished = execute_run(journal)
    finally:
        command("losetup", "--detach", node)
    assert finished.verdict is VerdictName.FAILED
    assert "say a larger `bs`, or direct=0" in finished.reasons[0]
    assert names(journal, "engine").count("started") == 1


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (DIRECT_WRITES, "Most of the drive's traffic was not the engine's"),
        (REWRITES, "served by the page cache"),
    ],
)
def test_writes_of_another_process_to_the_drive_are_not_attributed_to_the_engine(
    tmp_path: Path, job: str, words: str
) -> None:
    """The other one writes more than the engine in either case; the engine's own bytes reach the drive or do not."""
    with loop_drive(tmp_path / "drive.img", 512 << 20) as drive:
        subprocess.run(["mkfs.ext4", "-q", str(drive.node)], check=True)
        with mounted(drive.node, tmp_path / "mount") as volume:
            other = subprocess.Popen([sys.executable, "-c", OTHER_WRITER, str(volume / "other")])
            try:
                # fio comes later on a drive that is busy, which is what a warm-up is for.
                target = DirectoryTarget(path=str(volume))
                finished = execute_run(queue_fio(tmp_path, job, target, soak="4s", warm_up="2s"))
            finally:
                other.kill()
                other.wait()
    written = report(tmp_path / "fio-run")["device"]["written"]
    assert written["device_bytes"] > 2 * written["engine_bytes"]
    assert [reason for reason in finished.reasons if words in reason], finished.reasons


def test_a_device_is_written_only_after_its_sentence_was_typed(tmp_path: Path) -> None:
    with loop_drive(tmp_path / "drive.img", 64 << 20) as drive:
        unconfirmed = DeviceTarget(identity=str(drive.file))
        sentence = confirmation_sentence(examine(unconfirmed, "fio-run"))
        before = drive.node.read_bytes()
        refused = execute_run(queue_fio(tmp_path / "refused", DIRECT_WRITES, unconfirmed, soak="4s"))
        assert refused.verdict is VerdictName.FAILED
        assert "confirmation" in refused.reasons[0] or sentence in refused.reasons[0]
        assert drive.node.read_bytes() == before
        confirmed = unconfirmed.model_copy(update={"confirmation": sentence})
        journal = queue_fio(tmp_path / "confirmed", DIRECT_WRITES, confirmed)
        assert execute_run(journal).verdict is VerdictName.PASS
        assert "prepared" not in names(journal, "engine")
        assert drive.node.read_bytes() != before


def test_a_drive_with_a_file_system_is_refused_whatever_was_typed(tmp_path: Path) -> None:
    with loop_drive(tmp_path / "drive.img", 64 << 20) as drive:
        subprocess.run(["mkfs.ext4", "-q", str(drive.node)], check=True)
        target = DeviceTarget(identity=str(drive.file))
        sentence = confirmation_sentence(examine(target, "fio-run"))
        before = drive.node.read_bytes()
        typed = target.model_copy(update={"confirmation": sentence})
        finished = execute_run(queue_fio(tmp_path, DIRECT_WRITES, typed, soak="4s"))
        assert finished.verdict is VerdictName.FAILED
        assert "ext4" in " ".join(finished.reasons)
        assert drive.node.read_bytes() == before
