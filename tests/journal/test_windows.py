"""No window is ever lost: whatever a writer dies in the middle of, the committed windows are there, once each."""

import shutil
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from tests.journal.journal_windows import START, seqs, window, write

from cliffwatch.journal import JournalReader, WindowLog, files
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
