"""Outgoing lines, buffered in memory while their reader does not read.

A coordinator that is stopped for a while does not block its part: windows measured meanwhile come late, but complete.
"""

import os
import threading
from collections import deque

#: Most bytes that are buffered, some thousands of windows; beyond that `put` waits for the reader.
LIMIT_BYTES = 64 * 1024**2
#: Limit in virtual time, where windows come as fast as they are read and no faster.
VIRTUAL_LIMIT_BYTES = 1024**2


class Outbox:
    """Queue of lines, written in order to a descriptor by a thread of its own."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.limit_bytes = LIMIT_BYTES
        self._lines: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._changed = threading.Condition()
        self._has_failed = False
        threading.Thread(target=self._write, name="outbox", daemon=True).start()

    def put(self, line: bytes) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting_bytes < self.limit_bytes or self._has_failed)
            self._lines.append(line)
            self._waiting_bytes += len(line)
            self._changed.notify_all()

    def flush(self) -> None:
        """Wait until everything was written, or there is no reader any more."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting_bytes or self._has_failed)

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._lines))
                line = self._lines.popleft()
            try:
                _write_whole(self._descriptor, line)
            except BrokenPipeError:
                # The commands end at the same time, which the thread that reads them handles.
                with self._changed:
                    self._has_failed = True
                    self._changed.notify_all()
                return
            with self._changed:
                self._waiting_bytes -= len(line)
                self._changed.notify_all()


def _write_whole(descriptor: int, line: bytes) -> None:
    left = memoryview(line)
    while left:
        left = left[os.write(descriptor, left) :]
