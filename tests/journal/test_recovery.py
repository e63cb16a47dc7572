"""A copy that is damaged never costs the other one, and a disk that is full leaves nothing half written."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from testkit.small_disk import SmallDisk, small_disk
from tests.journal.journal_windows import START, seqs, window, write

from cliffwatch.base.errors import Code, Problem
from cliffwatch.journal import Event, EventLog, EventType, JournalReader, WindowLog, files

DAMAGES = {
    "emptied": b"",
    "zeroes": b"\0" * 5000,
    "lines of zeroes": (b"\0" * 100 + b"\n") * 5,
    "not windows": b"[]\n" * 5,
}


def intervals(directory: Path) -> list[bytes]:
    return [line for line in (directory / files.LATENCY).read_bytes().splitlines() if line.startswith(b"Tag=")]


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_histograms_outlive_the_lines_that_named_them(tmp_path: Path, damage: bytes) -> None:
    write(tmp_path, 5)
    before = intervals(tmp_path)
    (tmp_path / files.WINDOWS).write_bytes(damage)
    log = WindowLog(tmp_path, START)
    assert log.orphaned_bytes > 0
    log.append(window(7), "soak")
    log.close()
    assert intervals(tmp_path)[: len(before)] == before
    reader = JournalReader(tmp_path)
    (committed,) = reader.windows()
    assert reader.histograms(committed)["append"].count == 101


@pytest.mark.parametrize("damage", [b"damaged\n", b"\0" * 4096])
def test_a_damaged_end_costs_no_histogram_of_what_was_committed(tmp_path: Path, damage: bytes) -> None:
    write(tmp_path, 5)
    before = intervals(tmp_path)
    lines = (tmp_path / files.WINDOWS).read_bytes().splitlines(keepends=True)
    (tmp_path / files.WINDOWS).write_bytes(b"".join(lines[:3]) + damage)
    log = WindowLog(tmp_path, START)
    log.append(window(7), "soak")
    log.close()
    assert intervals(tmp_path)[: len(before)] == before
    assert damage.rstrip(b"\n") in (tmp_path / files.WINDOWS).read_bytes()
    reader = JournalReader(tmp_path)
    assert [item.start for item in reader.windows()] == [START, START + 10, START + 20, START + 70]
    assert all(reader.histograms(item)["append"].count == 101 for item in reader.windows())


def test_a_journal_with_an_unreadable_file_is_refused_and_left_unchanged(tmp_path: Path) -> None:
    """What stands in the file's place gives the error that a bad sector gives: when it is read."""
    write(tmp_path, 3)
    before = (tmp_path / files.LATENCY).read_bytes()
    (tmp_path / files.WINDOWS).unlink()
    (tmp_path / files.WINDOWS).symlink_to("/proc/self/mem")
    with pytest.raises(Problem) as refused:
        WindowLog(tmp_path, START)
    assert refused.value.code is Code.JOURNAL_UNREADABLE
    assert files.WINDOWS in refused.value.detail
    assert (tmp_path / files.LATENCY).read_bytes() == before


def test_one_window_in_progress_is_still_cut_off(tmp_path: Path) -> None:
    write(tmp_path, 3)
    lines = (tmp_path / files.WINDOWS).read_bytes().splitlines(keepends=True)
    (tmp_path / files.WINDOWS).write_bytes(b"".join(lines[:2]))
    log = WindowLog(tmp_path, START)
    assert (log.orphaned_bytes, log.recovered_bytes > 0) == (0, True)
    log.close()
    assert len(intervals(tmp_path)) == 4


def append_for_ever(log: WindowLog) -> None:
    """What the last pages of both files still take, they take."""
    for seq in count():
        log.append(window(seq), "soak")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as made:
        yield made


def test_a_window_that_the_disk_has_no_room_for_leaves_nothing_and_can_be_repeated(disk: SmallDisk) -> None:
    log = WindowLog(disk.path, START)
    disk.fill()
    with pytest.raises(OSError, match="No space left"):
        append_for_ever(log)
    seq = 0 if log.last is None else log.last.seq + 1
    assert seqs(disk.path) == list(range(seq))
    assert len(intervals(disk.path)) == 2 * seq
    disk.free()
    log.append(window(seq), "soak")
    log.close()
    reader = JournalReader(disk.path)
    assert [item.seq for item in reader.windows()] == list(range(seq + 1))
    assert all(reader.histograms(item)["sync"].count == 101 for item in reader.windows())
    assert reader.faults == []


def test_an_event_that_the_disk_has_no_room_for_leaves_nothing(disk: SmallDisk) -> None:
    log = EventLog(disk.path)
    log.append(Event(1.0, EventType.NOTE, "before"))
    disk.fill()
    with pytest.raises(OSError, match="No space left"):
        log.append(Event(2.0, EventType.NOTE, "too_long", {"filler": "x" * 20_000}))
    disk.free()
    log.append(Event(3.0, EventType.NOTE, "after"))
    reader = JournalReader(disk.path)
    assert [stored.event.name for stored in reader.events()] == ["before", "after"]
    assert reader.faults == []
