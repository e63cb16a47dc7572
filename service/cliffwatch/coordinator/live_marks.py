"""Marked spans of a live run: the service appends marks to the journal, and the worker reads them there."""

from pathlib import Path

from cliffwatch.analysis.marks import Mark, mark_of
from cliffwatch.journal import JournalReader, JournalWindow, files


class LiveMarks:
    """Marks of one run. Each call of `look` reads the events appended since the previous call."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._offset_bytes, self._last_id = 0, 0
        self._marks: list[Mark] = []

    def look(self) -> list[Mark]:
        """Read and return new marks; none while events.jsonl is missing. Raises OSError."""
        try:
            size_bytes = (self._directory / files.EVENTS).stat().st_size
        except FileNotFoundError:
            return []
        if size_bytes <= self._offset_bytes:
            return []
        found = []
        for stored in JournalReader(self._directory).events(self._offset_bytes, self._last_id + 1):
            self._offset_bytes, self._last_id = stored.offset_bytes, stored.id
            if (mark := mark_of(stored.event)) is not None:
                found.append(mark)
        self._marks += found
        return found

    def until(self, moment: float) -> float:
        """End of the first marked span that ends after the moment; the moment itself where none does."""
        return min((mark.end for mark in self._marks if mark.end > moment), default=moment)

    def covers(self, window: JournalWindow) -> bool:
        """Whether any part of the window was marked: such a window is not judged, as in the report."""
        return any(mark.overlaps(window.start, window.end) for mark in self._marks)
