"""No window is ever lost: whatever a writer dies in the middle of, the committed windows are there, once each."""

import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from tests.journal.journal_windows import START, seqs, window, write

from cliffwatch.base.errors import Problem
from cliffwatch.base.histogram import Histogram
from cliffwatch.journal import JournalReader, WindowLog, files
from cliffwatch.journal.reader import HISTOGRAMS_LIMIT_BYTES
from cliffwatch.journal.windows import OverlapError


def test_windows_and_their_histograms_are_read_back(tmp_path: Path) -> None:
    write(tmp_path, 3)
    reader = JournalReader(tmp_path)
    committed = list(reader.windows())
    assert [item.start for item in committed] == [START, START + 10, START + 20]
    assert committed[2].latency["append"]["p50"] == pytest.approx(0.003, rel=1e-3)
    assert committed[2].latency["append"]["max"] == pytest.approx(9.0, rel=1e-3)
    assert reader.histograms(committed[1])["sync"].encode() == window(1).latency["sync"].encode()
    assert reader.faults == []


def test_the_interval_log_opens_in_the_usual_tools(tmp_path: Path) -> None:
    write(tmp_path, 3)
    log = HistogramLogReader(str(tmp_path / files.LATENCY), HdrHistogram(1000, 3_600_000_000_000, 3))
    intervals = []
    while (interval := log.get_next_interval_histogram()) is not None:
        intervals.append((interval.get_start_time_stamp() / 1000, interval.get_tag(), interval.get_total_count()))
    log.input_file.close()
    assert intervals == [(START + 10 * seq, tag, 101) for seq in range(3) for tag in ("append", "sync")]


def test_a_writer_that_dies_at_any_byte_loses_at_most_the_window_in_progress(tmp_path: Path) -> None:
    """Cut both files at every length that the last append went through, reopen, and go on."""
    whole = tmp_path / "whole"
    whole.mkdir()
    write(whole, 2)
    before = {name: (whole / name).stat().st_size for name in (files.LATENCY, files.WINDOWS)}
    write(whole, 1)
    after = {name: (whole / name).stat().st_size for name in (files.LATENCY, files.WINDOWS)}
    cuts = [(length, before[files.WINDOWS]) for length in range(before[files.LATENCY], after[files.LATENCY], 97)]
    cuts += [(after[files.LATENCY], length) for length in range(before[files.WINDOWS], after[files.WINDOWS] + 1, 13)]
    cuts.append((after[files.LATENCY], after[files.WINDOWS]))
    for number, (latency_bytes, windows_bytes) in enumerate(cuts):
        directory = tmp_path / str(number)
        shutil.copytree(whole, directory)
        for name, length in ((files.LATENCY, latency_bytes), (files.WINDOWS, windows_bytes)):
            with (directory / name).open("r+b") as file:
                file.truncate(length)
        survived = seqs(directory)
        assert survived in ([0, 1], [0, 1, 2])
        write(directory, 1)
        reader = JournalReader(directory)
        committed = list(reader.windows())
        assert [item.seq for item in committed] == list(range(len(survived) + 1))
        for item in committed:
            assert reader.histograms(item)["append"].count == 101
        assert reader.faults == []
        shutil.rmtree(directory)


def test_a_window_that_overlaps_the_last_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, 2)
    log = WindowLog(tmp_path, START)
    sizes = [(tmp_path / name).stat().st_size for name in (files.LATENCY, files.WINDOWS)]
    with pytest.raises(OverlapError):
        log.append(window(1), "soak")
    assert [(tmp_path / name).stat().st_size for name in (files.LATENCY, files.WINDOWS)] == sizes
    log.close()


@pytest.mark.parametrize("name", [files.WINDOWS, files.LATENCY])
@pytest.mark.parametrize("how", ["removed", "moved", "replaced by a copy"])
def test_a_file_that_is_taken_out_of_the_journal_is_begun_again(tmp_path: Path, name: str, how: str) -> None:
    (journal := tmp_path / "journal").mkdir()
    log = WindowLog(journal, START)
    for index in range(3):
        log.append(window(index), "soak")
    assert log.displaced() is None
    if how == "removed":
        (journal / name).unlink()
    elif how == "moved":
        (journal / name).rename(tmp_path / name)
    else:
        shutil.copy(journal / name, tmp_path / name)
        (tmp_path / name).replace(journal / name)
    assert log.displaced() == name
    log = log.begun_again()
    assert log.displaced() is None
    committed = log.append(window(3), "soak")
    log.close()
    assert committed.seq == 3
    reader = JournalReader(journal)
    found = list(reader.windows())
    assert found[-1] == committed
    assert len(found) == (1 if name == files.WINDOWS and how != "replaced by a copy" else 4)
    assert reader.histograms(committed)["sync"].encode() == window(3).latency["sync"].encode()


def test_a_log_that_cannot_be_opened_keeps_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    for number, place in enumerate((files.WINDOWS, files.LATENCY, "synced")):
        (journal := tmp_path / str(number)).mkdir()
        if place == "synced":
            # Stands for a disk that fails at this moment, which a real one does not do on demand.
            monkeypatch.setattr(os, "fsync", _fail)
        else:
            (journal / place).symlink_to("nowhere/at/all")
        with pytest.raises(OSError):  # noqa: PT011
            WindowLog(journal, START)
    assert set(Path("/proc/self/fd").iterdir()) == before


def _fail(_: int) -> None:
    raise OSError(errno.EIO, "Input/output error")


def test_a_journal_that_is_moved_has_its_files(tmp_path: Path) -> None:
    (journal := tmp_path / "journal").mkdir()
    log = WindowLog(journal, START)
    journal.rename(tmp_path / "elsewhere")
    assert log.displaced() is None
    log.append(window(0), "soak")
    log.close()
    assert seqs(tmp_path / "elsewhere") == [0]


def test_a_damaged_line_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    write(tmp_path, 5)
    path = tmp_path / files.WINDOWS
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = b"\x00\xff" + lines[2][2:]
    path.write_bytes(b"".join(lines))
    reader = JournalReader(tmp_path)
    assert [item.seq for item in reader.windows()] == [0, 1, 3, 4]
    assert [(fault.file, fault.line) for fault in reader.faults] == [(files.WINDOWS, 3)]
    write(tmp_path, 1)
    assert seqs(tmp_path) == [0, 1, 3, 4, 5]


def test_a_damaged_last_line_does_not_make_numbers_start_again(tmp_path: Path) -> None:
    write(tmp_path, 3)
    path = tmp_path / files.WINDOWS
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]) + b"damaged\n")
    log = WindowLog(tmp_path, START)
    assert log.last is not None
    assert log.last.seq == 1
    log.close()


def test_reading_from_a_window_on_finds_it_in_a_long_file(tmp_path: Path) -> None:
    log = WindowLog(tmp_path, START)
    for seq in range(1000):
        log.append(window(seq), "soak")
    log.close()
    for first_seq in (0, 1, 250, 617, 999, 1000):
        assert [item.seq for item in JournalReader(tmp_path).windows(first_seq)] == list(range(first_seq, 1000))
    last = JournalReader(tmp_path).last_window()
    assert last is not None
    assert last.seq == 999


def test_merged_histograms_hold_every_window_of_a_group(tmp_path: Path) -> None:
    write(tmp_path, 6)
    reader = JournalReader(tmp_path)
    merged = reader.merged(reader.windows(), lambda item: "even" if item.seq % 2 == 0 else "odd")
    assert merged["even"]["append"].count == 303
    assert merged["odd"]["append"].percentiles_seconds((0.5,))[0] == pytest.approx(0.004, rel=1e-3)


def test_a_journal_without_windows_is_empty_not_broken(tmp_path: Path) -> None:
    reader = JournalReader(tmp_path)
    assert list(reader.windows()) == []
    assert list(reader.windows(5)) == []
    assert reader.last_window() is None
    assert reader.merged([], lambda item: "") == {}


@pytest.mark.parametrize("name", [files.WINDOWS, files.LATENCY])
def test_a_directory_in_the_place_of_a_file_is_a_fault_and_takes_nothing_with_it(tmp_path: Path, name: str) -> None:
    write(tmp_path, 2)
    other = files.LATENCY if name == files.WINDOWS else files.WINDOWS
    kept = (tmp_path / other).read_bytes()
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    with pytest.raises(Problem, match=f"{name} is a directory; move it away"):
        WindowLog(tmp_path, START)
    assert (tmp_path / other).read_bytes() == kept
    reader = JournalReader(tmp_path)
    assert len(list(reader.windows())) == (0 if name == files.WINDOWS else 2)
    list(reader.windows(1))
    reader.last_window()
    assert {fault.file for fault in reader.faults} == ({name} if name == files.WINDOWS else set())


def test_only_the_histograms_of_a_windows_own_latencies_are_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes 190 KB, and a line of 40 bytes is enough for one: thousands in one range took gigabytes."""
    write(tmp_path, 1)
    (committed,) = JournalReader(tmp_path).windows()
    payload = window(0).latency["sync"].encode()
    content = (tmp_path / files.LATENCY).read_bytes()
    more = "".join(f"Tag=t{number},1.0,1.0,1.0,{payload}\n" for number in range(500)).encode()
    with (tmp_path / files.LATENCY).open("ab") as file:
        file.write(more)
    decoded: list[str] = []
    decode = Histogram.decode

    def counted(text: str) -> Histogram:
        decoded.append(text)
        return decode(text)

    monkeypatch.setattr(Histogram, "decode", counted)
    wider = replace(committed, latency_range=(committed.latency_range[0], len(content) + len(more)), latency_crc32=None)
    reader = JournalReader(tmp_path)
    assert set(reader.histograms(wider)) == {"append", "sync"}
    assert set(reader.merged([wider], lambda item: item.phase)["soak"]) == {"append", "sync"}
    assert len(decoded) == 4


def test_a_range_that_no_window_has_is_damage(tmp_path: Path) -> None:
    write(tmp_path, 1)
    (committed,) = JournalReader(tmp_path).windows()
    first, behind = committed.latency_range
    lines = (tmp_path / files.LATENCY).read_bytes()[first:behind]
    with (tmp_path / files.LATENCY).open("ab") as file:
        file.write(lines)
        file.truncate(behind + len(lines) + HISTOGRAMS_LIMIT_BYTES)
    again = replace(committed, latency_range=(first, behind + len(lines)), latency_crc32=None)
    with pytest.raises(Problem, match="window 0 cannot be read: those of append are there twice"):
        JournalReader(tmp_path).histograms(again)
    large = replace(committed, latency_range=(first, behind + HISTOGRAMS_LIMIT_BYTES), latency_crc32=None)
    with pytest.raises(Problem, match=r"window 0 cannot be read: they take .* no window's take"):
        JournalReader(tmp_path).histograms(large)
