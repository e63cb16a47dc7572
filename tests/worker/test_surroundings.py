"""What a worker says of the drives and file systems below its run."""

import subprocess
from pathlib import Path

from cliffwatch.coordinator.metrics import RunFileSystem
from cliffwatch.coordinator.run import file_systems_of
from cliffwatch.gate import Examination, HeldTarget, examine
from cliffwatch.model.target import DirectoryTarget, SyntheticTarget
from cliffwatch.part.lines import Held
from cliffwatch.part.target import PartTarget


def mount_point_of(path: Path) -> str:
    done = subprocess.run(["findmnt", "-no", "TARGET", "-T", str(path)], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def held(examination: Examination) -> Held:
    target = HeldTarget(examination.path, examination.is_device)
    return PartTarget(examination, target, existed=False).answer()


def test_a_directory_stands_for_its_drives_and_both_file_systems_are_named(tmp_path: Path) -> None:
    answer = held(examine(DirectoryTarget(path=str(tmp_path)), "run-1"))
    for drive in answer.drives:
        assert (Path("/sys/block") / drive.name / "queue").is_dir()
        limit = (Path("/sys/block") / drive.name / "queue" / "nr_requests").read_text()
        assert drive.queue_requests == int(limit)
    assert file_systems_of([answer], Path("/dev/shm")) == (
        RunFileSystem(mount_point_of(tmp_path), "target"),
        RunFileSystem("/dev/shm", "journal"),
    )


def test_a_synthetic_target_has_no_drive_and_a_journal_that_is_gone_no_file_system(tmp_path: Path) -> None:
    answer = held(examine(SyntheticTarget(name="none"), "run-1"))
    assert answer.drives == ()
    assert file_systems_of([answer], tmp_path / "gone") == ()
