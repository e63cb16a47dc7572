"""A bit that changes in a journal is damage, wherever it is, and no other measurement."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from testkit.recorded_runs import JournalPlan, make_journal

from cliffwatch.base.errors import Problem
from cliffwatch.journal import Event, JournalReader, files
from cliffwatch.journal.checksum import opened
from cliffwatch.journal.windows import JournalWindow

READERS: dict[str, Callable[[bytes], Event | JournalWindow]] = {
    files.WINDOWS: JournalWindow.from_line,
    files.EVENTS: Event.from_line,
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_journal(tmp_path_factory.mktemp("runs") / "run", JournalPlan(windows=3))


@pytest.mark.parametrize("name", READERS)
def test_no_bit_of_a_line_changes_unseen(directory: Path, name: str) -> None:
    line = (directory / name).read_bytes().splitlines()[-1]
    for place in range(len(line)):
        for bit in range(8):
            changed = bytearray(line)
            changed[place] ^= 1 << bit
            with pytest.raises(ValueError, match=r".+"):
                READERS[name](bytes(changed))


@pytest.mark.parametrize("name", READERS)
def test_a_digit_that_changed_is_a_fault_of_its_line(directory: Path, name: str, tmp_path: Path) -> None:
    lines = (directory / name).read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"1", b"2", 1)
    (tmp_path / name).write_bytes(b"".join(lines))
    reader = JournalReader(tmp_path)
    read = list(reader.windows()) if name == files.WINDOWS else list(reader.events())
    assert len(read) == len(lines) - 1
    [fault] = reader.faults
    assert (fault.file, fault.line) == (name, 2)
    assert fault.message == "its checksum is another one: it was changed after it was written"


@pytest.mark.parametrize("name", READERS)
def test_a_line_without_a_checksum_is_of_an_older_journal(directory: Path, name: str) -> None:
    line = (directory / name).read_bytes().splitlines()[-1]
    body = json.loads(opened(line))
    body.pop("latency_crc32", None)
    assert "crc32" not in body
    older = READERS[name](json.dumps(body).encode())
    assert older.to_line() == line.decode() + "\n" or isinstance(older, JournalWindow)


def test_a_window_whose_checksum_is_cut_out_is_damaged_and_not_old(directory: Path) -> None:
    line = (directory / files.WINDOWS).read_bytes().splitlines()[-1]
    histograms = json.loads(line)["latency_crc32"].encode()
    with pytest.raises(ValueError, match="lost its checksum"):
        JournalWindow.from_line(line.replace(histograms + b'","crc32":"', b""))


def test_no_bit_of_a_histogram_changes_unseen(directory: Path, tmp_path: Path) -> None:
    [window, *_] = JournalReader(directory).windows()
    content = (directory / files.LATENCY).read_bytes()
    first, behind = window.latency_range
    for place in range(first, behind):
        changed = bytearray(content)
        changed[place] ^= 1
        (tmp_path / files.LATENCY).write_bytes(changed)
        with pytest.raises(Problem, match="the histograms of window 0 cannot be read: their checksum is another one"):
            JournalReader(tmp_path).histograms(window)
