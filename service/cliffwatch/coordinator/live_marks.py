"""Marks of a run as they come while it goes on: the service appends them to the journal, and the worker follows."""

from pathlib import Path

from cliffwatch.analysis.marks import Mark, mark_of
from cliffwatch.journal import JournalReader, JournalWindow, files


class LiveMarks:
    """Those of one run. Each `look` reads the events that came since the one before."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._offset_bytes, self._last_id = 0, 0
        self._marks: list[Mark] = []

    def look(self) -> list[Mark]:
        """Those that are new; none while the journal is away. Raises OSError."""
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
        """When the first marked span ends that ends after the moment; the moment itself where none does."""
        return min((mark.end for mark in self._marks if mark.end > moment), default=moment)

    def covers(self, window: JournalWindow) -> bool:
        """Whether any part of the window was marked: it is not judged then, as in the report."""
        return any(mark.overlaps(window.start, window.end) for mark in self._marks)
