"""Read a journal, whole or damaged, finished or still being written.

A line that cannot be read is skipped and reported as a `JournalFault`; its content is a gap. A last line without a
newline is a write in progress and is not a fault.
"""

import mmap
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.finite_json import lenient_json, may_be_unfit
from cliffwatch.base.histogram import Histogram
from cliffwatch.base.regular_files import read_regular, reading
from cliffwatch.journal import files
from cliffwatch.journal.checksum import checksum
from cliffwatch.journal.events import Event
from cliffwatch.journal.windows import JournalWindow

T = TypeVar("T")
#: Maximum size of a window's histograms: about ten, each of at most 64 KiB, take less.
HISTOGRAMS_LIMIT_BYTES = 8 * 1024**2
#: Maximum length of a journal line: a window with all its counters has some kilobytes.
LINE_LIMIT_BYTES = 4 * 1024**2


@dataclass(frozen=True, slots=True)
class JournalFault:
    """A place in a journal that cannot be read; `line` counts from 1."""

    file: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event with its id (line number, from 1), the byte offset of its line's end, and the length of its line."""

    id: int
    offset_bytes: int
    size_bytes: int
    event: Event


class JournalReader:
    """Read-only view of one run's journal. `faults` collects the damaged lines that were met so far."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.faults: list[JournalFault] = []

    def document(self, name: str) -> dict[str, Any]:
        """A JSON document of the journal, such as order.json. Raises Problem when it is missing or damaged."""
        path = self.directory / name
        try:
            body, _ = lenient_json(read_regular(path).decode())
        except (OSError, ValueError) as error:
            raise Problem(Code.JOURNAL_UNREADABLE, f"{path} cannot be read: {error}") from error
        if not isinstance(body, dict):
            raise Problem(Code.JOURNAL_UNREADABLE, f"{path} does not hold a JSON object")
        return body

    def facts(self) -> dict[str, Any]:
        """Facts that the worker found before the load began; empty if they were not recorded yet."""
        return self.document(files.FACTS) if (self.directory / files.FACTS).exists() else {}

    def events(self, offset_bytes: int = 0, first_id: int = 1, after_id: int = 0) -> Iterator[StoredEvent]:
        """Events from a byte offset on. To go on after a `StoredEvent`, give its offset, and `first_id` = its id + 1.

        Events up to the id `after_id` are skipped without parsing them.
        """
        for number, end, line in self._lines(files.EVENTS, offset_bytes, first_id):
            if number <= after_id:
                continue
            event = self._parse(files.EVENTS, number, line, Event.from_line)
            if event is not None:
                yield StoredEvent(number, end, len(line), event)

    def windows(self, first_seq: int = 0) -> Iterator[JournalWindow]:
        """Committed windows in order, from number `first_seq` on (found by bisection). A repeated one is a fault."""
        start = self._offset_of(first_seq) if first_seq > 0 else 0
        last_seq = -1
        for number, _, line in self._lines(files.WINDOWS, start, 1 if start == 0 else None):
            window = self._parse(files.WINDOWS, number, line, JournalWindow.from_line)
            if window is None:
                continue
            if window.seq <= last_seq:
                message = f"window {window.seq} is there again, or in another one's place, behind window {last_seq}"
                self.faults.append(JournalFault(files.WINDOWS, number, message))
                continue
            last_seq = window.seq
            if window.seq >= first_seq:
                yield window

    def last_window(self) -> JournalWindow | None:
        """The newest committed window, read from the end of the file."""
        path = self.directory / files.WINDOWS
        if not path.exists() or not self._is_file(path):
            return None
        with reading(path) as file:
            size_bytes = file.seek(0, 2)
            reach = 1 << 16
            while True:
                file.seek(max(0, size_bytes - reach))
                lines = file.read().split(b"\n")[:-1]
                for line in reversed(lines if reach >= size_bytes else lines[1:]):
                    try:
                        return JournalWindow.from_line(line)
                    except ValueError:
                        continue
                if reach >= min(size_bytes, 4 * LINE_LIMIT_BYTES):
                    return None
                reach *= 4

    def histograms(self, window: JournalWindow) -> dict[str, Histogram]:
        """The exact histograms of a window, by latency name. Raises Problem when latency.hlog is damaged there."""
        try:
            with reading(self.directory / files.LATENCY) as file:
                return dict(_histograms_of(window, file))
        except OSError as error:
            raise _unreadable(window, error.strerror or str(error)) from error

    def merged(
        self,
        windows: Iterable[JournalWindow],
        key: Callable[[JournalWindow], str],
        each: Callable[[JournalWindow, str, Histogram], None] | None = None,
    ) -> dict[str, dict[str, Histogram]]:
        """Histograms merged over windows that share a key: key → latency name → histogram.

        `each` is called with every single histogram, its window and its latency name.
        """
        groups: dict[str, dict[str, Histogram]] = {}
        path = self.directory / files.LATENCY
        if not path.exists():
            return groups
        try:
            with reading(path) as file:
                for window in windows:
                    group = groups.setdefault(key(window), {})
                    try:
                        for name, histogram in _histograms_of(window, file):
                            group.setdefault(name, Histogram()).merge(histogram)
                            if each is not None:
                                each(window, name, histogram)
                    except Problem as problem:
                        self.faults.append(JournalFault(files.LATENCY, window.seq + 1, problem.detail))
        except OSError as error:
            self.faults.append(JournalFault(files.LATENCY, 0, f"cannot be read: {error.strerror}"))
        return groups

    def _is_file(self, path: Path) -> bool:
        """Whether the path is a regular file; anything else in its place is a fault."""
        if not path.is_file():
            self.faults.append(JournalFault(path.name, 0, "is no file"))
            return False
        return True

    def _parse(self, file: str, number: int, line: bytes, parse: Callable[[bytes], T]) -> T | None:
        try:
            found = parse(line)
        except ValueError as error:
            self.faults.append(JournalFault(file, number, str(error)))
            return None
        _, unfit = lenient_json(line) if may_be_unfit(line) else (None, 0)
        if unfit:
            self.faults.append(JournalFault(file, number, f"{unfit} numbers are not finite and count as absent"))
        return found

    def _lines(self, name: str, offset_bytes: int, first: int | None) -> Iterator[tuple[int, int, bytes]]:
        """Complete lines as (line number, offset of the line's end, line); the number is 0 if `first` is None."""
        path = self.directory / name
        if not path.exists() or not self._is_file(path):
            return
        with reading(path) as file:
            file.seek(offset_bytes)
            end = offset_bytes
            for index, (size_bytes, line) in enumerate(_complete_lines(file)):
                end += size_bytes
                number = 0 if first is None else first + index
                if line is None:
                    message = f"is a line of {size_bytes} bytes, and none has more than {LINE_LIMIT_BYTES}"
                    self.faults.append(JournalFault(name, number, message))
                elif line != b"\n":
                    yield number, end, line

    def _offset_of(self, seq: int) -> int:
        """Byte offset of a line at or shortly before window `seq`, by bisection of a file with increasing numbers."""
        path = self.directory / files.WINDOWS
        if not path.exists() or path.stat().st_size == 0 or not self._is_file(path):
            return 0
        with reading(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            low, high = 0, len(content)
            while high - low > 1 << 16:
                middle = content.find(b"\n", (low + high) // 2) + 1
                if middle == 0 or middle >= high:
                    break
                try:
                    found = JournalWindow.from_line(content[middle : content.find(b"\n", middle)]).seq
                except ValueError:
                    break  # damaged here: read on from the last good place instead
                if found <= seq:
                    low = middle
                else:
                    high = middle
            return low


def _complete_lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Length and content of each line that ends with a newline; None for a line too long to keep in memory."""
    while line := file.readline(LINE_LIMIT_BYTES):
        size_bytes, is_whole = len(line), line.endswith(b"\n")
        part = line
        while not part.endswith(b"\n"):
            if len(part) < LINE_LIMIT_BYTES:
                return  # a write in progress
            part = file.readline(LINE_LIMIT_BYTES)
            size_bytes += len(part)
        yield size_bytes, line if is_whole else None


def _histograms_of(window: JournalWindow, file: BinaryIO) -> Iterator[tuple[str, Histogram]]:
    """Name and histogram of each latency of the window; other lines in its range of latency.hlog are ignored.

    Raises Problem(journal_unreadable).
    """
    start, end = window.latency_range
    if end > os.fstat(file.fileno()).st_size:
        # Not read, since memory for the whole range would be allocated.
        raise _unreadable(window, f"{files.LATENCY} ends before them")
    if end - start > HISTOGRAMS_LIMIT_BYTES:
        raise _unreadable(window, f"they take {end - start} bytes, and no window's take {HISTOGRAMS_LIMIT_BYTES}")
    file.seek(start)
    lines = file.read(end - start)
    if window.latency_crc32 not in (None, checksum(lines)):
        raise _unreadable(window, "their checksum is another one: they were changed after they were written")
    found = set()
    for line in lines.decode("ascii", "replace").splitlines():
        try:
            tag, _, _, _, payload = line.split(",")
            name = tag_name(tag)
            if name not in window.latency:
                continue
            if name in found:
                raise ValueError(f"those of {name} are there twice")
            found.add(name)
            yield name, Histogram.decode(payload)
        except ValueError as error:
            raise _unreadable(window, str(error)) from error


def tag_name(tag: str) -> str:
    """Name of a latency, from the first field (`Tag=…`) of its line in latency.hlog."""
    return tag.removeprefix("Tag=")


def _unreadable(window: JournalWindow, why: str) -> Problem:
    return Problem(Code.JOURNAL_UNREADABLE, f"the histograms of window {window.seq} cannot be read: {why}")
