"""BookKeeper's journal on a drive of its own: there alone, bounded, begun anew after a crash, gone when it is full."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from testkit.loops import MIB, LoopDrive, command, loop_drive, mounted
from testkit.storage_engine import load_of, run, running, verify

from cliffwatch.machine.diskstats import DeviceCounters, read_counters
from cliffwatch.machine.sysfs import device_number
from cliffwatch.model.window import EngineWindow

#: The one that is full, the one that follows it, and what may wait for its checkpoint; of 4 MB a second.
LONGEST_JOURNAL_BYTES = 4 * MIB
LOAD = load_of(
    style="bookkeeper",
    style_changes={
        "segment_size": "512KiB",
        "journal_segment_size": "512KiB",
        "journal_preallocation": "256KiB",
        "checkpoint_interval": "250ms",
    },
)


@dataclass(frozen=True, slots=True)
class Apart:
    """A second drive, with a file system that has a directory for the journal."""

    drive: LoopDrive
    mount_point: Path

    @property
    def directory(self) -> Path:
        return self.mount_point / "run"

    @property
    def changes(self) -> dict[str, Any]:
        return {"journal_directory": str(self.directory)}

    @property
    def journal_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.directory.rglob("*.log"))

    def counters(self) -> DeviceCounters:
        number = device_number(self.drive.node)
        assert number is not None
        return read_counters([number])[number]


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[Apart]:
    with loop_drive(tmp_path / "image", 64 * MIB) as drive:
        command("mkfs.ext4", "-q", "-m", "0", drive.node)
        with mounted(drive.node, tmp_path / "journal-drive") as mount_point:
            second = Apart(drive, mount_point)
            second.directory.mkdir()
            yield second


def test_every_batch_goes_through_the_journals_own_drive(tmp_path: Path, apart: Apart) -> None:
    before = apart.counters()
    outcome = run(LOAD, tmp_path / "data", 3, changes=apart.changes)
    assert (outcome.status, outcome.end.status) == (0, "completed"), outcome.error
    assert apart.counters().write_bytes - before.write_bytes >= outcome.counters["bytes"] > 10_000_000
    assert sorted(path.name for path in apart.directory.iterdir()) == ["journal"]
    assert 0 < apart.journal_bytes < LONGEST_JOURNAL_BYTES
    assert not (tmp_path / "data" / "journal").exists()
    (verified,) = outcome.events("verified")
    assert (verified["lost"], verified["duplicated"], verified["reordered"], verified["corrupted"]) == (0, 0, 0, 0)
    # What it may still take of the target's volume is the log's matter alone.
    growth = [window.gauges["growth_left_bytes"] for window in outcome.windows]
    assert growth[0] > growth[-1]
    assert growth[-1] <= MIB


def test_after_a_crash_the_old_journal_goes_and_the_load_goes_on(tmp_path: Path, apart: Apart) -> None:
    with running(LOAD, tmp_path / "data", 60, changes=apart.changes) as killed:
        for _ in range(3):
            assert isinstance(killed.read_until("window"), EngineWindow)
        killed.process.kill()
    left = set(apart.directory.rglob("*.log"))
    assert left
    again = run(LOAD, tmp_path / "data", 1, changes=apart.changes)
    assert again.end.status == "completed", again.error
    assert apart.journal_bytes < LONGEST_JOURNAL_BYTES
    found = verify(tmp_path / "data")
    assert (found["status"], found["lost"], found["duplicated"], found["reordered"]) == (0, 0, 0, 0)


def test_a_journals_drive_that_fills_up_fails_the_load_and_nothing_is_left_on_either(
    tmp_path: Path, apart: Apart
) -> None:
    with running(LOAD, tmp_path / "data", 60, changes=apart.changes) as at_work:
        at_work.read_until("window")
        with (apart.mount_point / "other-data").open("wb") as other:
            try:
                while True:
                    other.write(bytes(MIB // 16))
                    other.flush()
            except OSError:
                pass
        outcome = at_work.finish()
    assert outcome.end.status == "failed"
    assert "the volume is full" in outcome.end.message
    assert not outcome.end.restart
    assert list(apart.directory.iterdir()) == []
    assert list((tmp_path / "data").iterdir()) == []


def test_a_journals_directory_that_holds_anything_else_is_refused(tmp_path: Path, apart: Apart) -> None:
    thesis = apart.directory / "thesis.txt"
    thesis.write_text("mine")
    outcome = run(LOAD, tmp_path / "data", 1, changes=apart.changes)
    assert outcome.status != 0
    assert str(apart.directory) in outcome.error + outcome.end.message
    assert thesis.read_text() == "mine"
