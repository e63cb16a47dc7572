"""Follow a run's status incrementally: each call reads only the events appended since the last."""

from pathlib import Path

from cliffwatch.journal import files
from cliffwatch.journal.reader import JournalReader
from cliffwatch.journal.state import RunStatus, advance


class StatusFollower:
    """Status of a run from its events. Each call of `status` reads only the events since the previous call.

    A file that became shorter, or was replaced, is read from its beginning.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._status: RunStatus | None = None
        self._offset_bytes, self._last_id, self._inode = 0, 0, -1
        #: Messages on events that the last call of `status` could not apply and skipped.
        self.faults: list[str] = []

    def status(self) -> RunStatus | None:
        """Current status; None when no state was recorded yet."""
        self.faults.clear()
        try:
            found = (self._directory / files.EVENTS).stat()
        except FileNotFoundError:
            return None
        if found.st_size < self._offset_bytes or found.st_ino != self._inode:
            self._status = None
            self._offset_bytes, self._last_id, self._inode = 0, 0, found.st_ino
        for stored in JournalReader(self._directory).events(self._offset_bytes, self._last_id + 1):
            self._status = advance(self._status, stored.event, self.faults)
            self._offset_bytes, self._last_id = stored.offset_bytes, stored.id
        return self._status
