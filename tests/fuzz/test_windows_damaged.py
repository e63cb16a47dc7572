"""windows.jsonl and latency.hlog: what a disk changed is named, and never another measurement."""

import math
from typing import Any

import pytest
from hypothesis import strategies as st
from tests.fuzz.damage import as_text, restructured, spoiled
from tests.fuzz.explore import bounded, explore, holds
from tests.fuzz.journals import bodies, journal, journal_files, resealed

from cliffwatch.base.errors import Problem
from cliffwatch.base.histogram import Histogram
from cliffwatch.journal import JournalReader, JournalWindow, WindowLog, files
from cliffwatch.model.window import EngineWindow

WRITTEN = journal_files()[files.WINDOWS]
WINDOWS = [JournalWindow.from_line(line) for line in WRITTEN.splitlines()]


def encoded(found: dict[str, Histogram]) -> dict[str, str]:
    return {name: histogram.encode() for name, histogram in found.items()}


def histograms_written() -> dict[int, dict[str, str]]:
    with journal() as directory:
        reader = JournalReader(directory)
        return {window.seq: encoded(reader.histograms(window)) for window in WINDOWS}


HISTOGRAMS = histograms_written()


def complete_lines(content: bytes) -> dict[int, bytes]:
    """Lines that end, by their numbers, without those that are empty."""
    lines = content.split(b"\n")[:-1]
    return {number: line for number, line in enumerate(lines, 1) if line}


@holds(examples=100, content=spoiled(st.just(WRITTEN)))
def test_a_damaged_line_is_named_and_never_another_window(content: bytes) -> None:
    with journal(windows_jsonl=content) as directory, bounded():
        reader = JournalReader(directory)
        found = list(reader.windows())
        whole = dict(zip(WRITTEN.splitlines(), WINDOWS, strict=True))
        lines = complete_lines(content)
        assert all(window in WINDOWS for window in found)
        assert [window.seq for window in found] == sorted({window.seq for window in found})
        assert {number for number, line in lines.items() if line.rstrip(b"\r") not in whole} <= {
            fault.line for fault in reader.faults
        }
        assert len(found) + len(reader.faults) == len(lines)
        last = JournalReader(directory).last_window()
        assert last is None or last in WINDOWS
        for first in (2, WINDOWS[-1].seq):
            assert [window for window in found if window.seq >= first] == list(JournalReader(directory).windows(first))


@holds(examples=60, content=spoiled(st.just(WRITTEN)))
def test_a_log_goes_on_behind_whatever_was_damaged(content: bytes) -> None:
    with journal(windows_jsonl=content) as directory:
        before = list(JournalReader(directory).windows())
        log = WindowLog(directory, WINDOWS[0].start)
        end = WINDOWS[-1].end
        fresh = EngineWindow(end, end + 10, {"operations": 1}, {}, {"publish": Histogram.from_values({2_000: 1})})
        committed = log.append(fresh, "soak")
        log.close()
        reader = JournalReader(directory)
        assert list(reader.windows()) == [*before, committed]
        assert committed.seq not in {window.seq for window in before}
        assert encoded(reader.histograms(committed)) == encoded(fresh.latency)
        for window in before:
            assert encoded(reader.histograms(window)) == HISTOGRAMS[window.seq]


@holds(examples=60, content=spoiled(st.just(journal_files()[files.LATENCY])))
def test_damaged_histograms_are_named_and_never_others(content: bytes) -> None:
    with journal(latency_hlog=content) as directory, bounded():
        reader = JournalReader(directory)
        damaged = set()
        for window in WINDOWS:
            try:
                assert encoded(reader.histograms(window)) == HISTOGRAMS[window.seq]
            except Problem:
                damaged.add(window.seq)
        merged = reader.merged(WINDOWS, lambda window: str(window.seq))
        assert {fault.line - 1 for fault in reader.faults} == damaged
        for window in WINDOWS:
            expected = {} if window.seq in damaged else HISTOGRAMS[window.seq]
            assert encoded(merged[str(window.seq)]) == expected


LINES = restructured(st.sampled_from(bodies(files.WINDOWS)))


@holds(examples=150, line=LINES | st.builds(resealed, LINES))
def test_a_line_that_says_something_else_is_a_window_or_none(line: str) -> None:
    with bounded():
        try:
            window = JournalWindow.from_line(line)
        except ValueError:
            return
    require_sound(window)
    assert JournalWindow.from_line(window.to_line()) == window
    with journal(windows_jsonl=line.encode("utf-8", "surrogatepass").rstrip(b"\n") + b"\n") as directory, bounded():
        reader = JournalReader(directory)
        (read,) = reader.windows()
        try:
            reader.histograms(read)
        except Problem as problem:
            assert str(read.seq) in problem.detail


def require_sound(window: JournalWindow) -> None:
    """What every reader of windows takes for granted."""
    assert isinstance(window.seq, int)
    assert isinstance(window.phase, str)
    assert isinstance(window.latency_crc32, str | None)
    assert all(isinstance(name, str) for part in (window.counters, window.gauges, window.latency) for name in part)
    numbers: list[Any] = [window.seconds, *window.counters.values(), *window.gauges.values()]
    numbers += [value for summary in window.latency.values() for value in summary.values() if value is not None]
    assert all(isinstance(value, int | float) and math.isfinite(float(value)) for value in numbers)
    assert all(isinstance(place, int) for place in window.latency_range)
    assert window.stalled in (True, False, None)


def test_a_log_that_ends_in_a_line_that_is_there_again_goes_on_behind_the_last() -> None:
    lines = WRITTEN.splitlines(keepends=True)
    with journal(windows_jsonl=WRITTEN + lines[-2]) as directory:
        end = WINDOWS[-1].end
        log = WindowLog(directory, WINDOWS[0].start)
        committed = log.append(EngineWindow(end, end + 10, {"operations": 1}), "soak")
        log.close()
        reader = JournalReader(directory)
        assert [window.seq for window in reader.windows()] == [*range(len(WINDOWS)), committed.seq]
        assert [fault.line for fault in reader.faults] == [len(lines) + 1]
        assert encoded(reader.histograms(WINDOWS[-1])) == HISTOGRAMS[WINDOWS[-1].seq]


@pytest.mark.parametrize("behind", [2**40, 2**62])
def test_histograms_that_end_behind_the_file_are_not_made_room_for(behind: int) -> None:
    body = {**bodies(files.WINDOWS)[0], "latency_range": [0, behind], "latency_crc32": None}
    window = JournalWindow.from_line(as_text(body))
    with journal() as directory, bounded(), pytest.raises(Problem, match="ends before them"):
        JournalReader(directory).histograms(window)


def test_histograms_that_are_gone_are_a_problem() -> None:
    with journal(latency_hlog=None) as directory, pytest.raises(Problem, match="window 0 cannot be read"):
        JournalReader(directory).histograms(WINDOWS[0])


@pytest.mark.real(why="damage at random")
def test_windows_at_random() -> None:
    explore(
        test_a_damaged_line_is_named_and_never_another_window,
        test_a_log_goes_on_behind_whatever_was_damaged,
        test_damaged_histograms_are_named_and_never_others,
        test_a_line_that_says_something_else_is_a_window_or_none,
    )
