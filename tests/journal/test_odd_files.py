"""What has the place of a journal's file and is none, or is one without end: named, and neither waited for nor kept."""

import os
from pathlib import Path

import pytest
from testkit import journals

from cliffwatch.base.errors import Problem
from cliffwatch.journal import JournalReader, files, reader
from cliffwatch.report.build import build
from cliffwatch.report.charts.curve import curve_of
from cliffwatch.report.collect import collect


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Of a finished run with three windows."""
    directory = journals.queue(tmp_path, "one")
    journals.start(directory)
    journals.measure(directory, 3)
    journals.finish(directory)
    return directory


@pytest.mark.parametrize("kind", ["fifo", "directory"])
@pytest.mark.parametrize("name", [files.EVENTS, files.WINDOWS, files.LATENCY, files.WORKLOAD])
def test_a_pipe_or_directory_as_a_journal_file_does_not_block_readers(journal: Path, name: str, kind: str) -> None:
    windows = list(JournalReader(journal).windows())
    (journal / name).unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(journal / name)
    else:
        (journal / name).mkdir()
    build(journal)
    curve_of(journal)
    if name == files.LATENCY:
        with pytest.raises(Problem):
            JournalReader(journal).histograms(windows[0])
    elif name != files.WORKLOAD:
        assert name in {fault.file for fault in collect(journal).faults}


def test_windows_that_are_gone_are_named_where_their_latencies_are_there(journal: Path) -> None:
    (journal / files.WINDOWS).unlink()
    (fault,) = collect(journal).faults
    assert (fault.file, fault.message) == (files.WINDOWS, "holds no window, and latency.hlog holds latencies")


def test_a_line_without_end_is_a_fault_and_not_kept_in_memory(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LINE_LIMIT_BYTES", 2048)
    path = journal / files.WINDOWS
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"\0" * 5000 + b"\n" + lines[1] + lines[2])
    found = JournalReader(journal)
    assert [window.seq for window in found.windows()] == [0, 1, 2]
    assert [(fault.line, fault.message) for fault in found.faults] == [
        (2, "is a line of 5001 bytes, and none has more than 2048")
    ]
    # A tail of NULs, as of a file that was made longer: no line, and the last window is not looked for without bound.
    with path.open("ab") as file:
        file.truncate(path.stat().st_size + (1 << 20))
    assert [window.seq for window in JournalReader(journal).windows()] == [0, 1, 2]
    assert JournalReader(journal).last_window() is None
