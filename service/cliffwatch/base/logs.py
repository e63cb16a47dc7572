"""Log files of bounded size: repeated lines are counted, and a file that grows too long is copied and truncated.

The files are the standard error of processes that keep them open for appending: the service, its workers, the watchers,
aging drives. So a log is not renamed: its content is copied to a file beside it, `.old`, and the log is truncated.
"""

import logging
import os
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from cliffwatch.base import durable
from cliffwatch.base.clock import Clock
from cliffwatch.base.regular_files import open_regular
from cliffwatch.base.rounds import Rounds

#: Maximum size of a log, and of the copy beside it.
LIMIT_BYTES = 10 * 1024**2
#: Interval of the size check: a log exceeds the limit by what is written meanwhile.
PERIOD_SECONDS = 2.0
SPAN_SECONDS = 60.0
#: Maximum number of lines per span with the same message format: a client that requests missing resources causes many.
LINES_OF_A_KIND = 20
_LINE_CHARACTERS = 8000
_LAST_LINE_BYTES = 4096
_LOG = logging.getLogger(__name__)


def open_log(path: Path) -> BinaryIO:
    """Open a log for a process to write to; a new one is readable by its owner only. Raises OSError."""
    return open(path, "ab", opener=open_regular)


def last_line(text: str) -> str:
    """Last line of a text that is not empty, which is often the reason why a process ended; empty if there is none."""
    return "".join(text.strip().splitlines()[-1:]).strip()


def last_line_of(path: Path) -> str:
    """Last line of a log that is not empty; empty where the log cannot be read."""
    try:
        with open(path, "rb", opener=open_regular) as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _LAST_LINE_BYTES))
            return last_line(log.read().decode(errors="replace"))
    except OSError:
        return ""


def bound(path: Path, limit_bytes: int = LIMIT_BYTES) -> None:
    """Truncate a log that is over its limit; its newest part is copied to a file beside it. Raises OSError."""
    try:
        size_bytes = path.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return
    if size_bytes <= limit_bytes:
        return
    old = path.with_suffix(".old")
    try:
        # Remove the old copy first, so that a full disk has room for the new one.
        old.unlink(missing_ok=True)
        with path.open("rb") as log, open(old, "xb", opener=durable.private) as kept:
            log.seek(max(0, size_bytes - limit_bytes))
            shutil.copyfileobj(log, kept)
    finally:
        # Also if the copy failed: a log must not fill a disk.
        os.truncate(path, 0)


class Repetitions(logging.Filter):
    """Log filter: in each minute, equal lines are written once, and at most LINES_OF_A_KIND with one message format.

    The first line of the next minute is preceded by the number of lines left out.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._span_end = 0.0
        self._seen: set[tuple[str, str]] = set()
        self._kinds: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        kind = f"{record.name} {record.levelname} {record.msg if record.args else ''}"
        error = repr(record.exc_info[1]) if record.exc_info else ""
        with self._lock:
            recorded = self._end_span()
            line = (text[:_LINE_CHARACTERS], error[:_LINE_CHARACTERS])
            written = line not in self._seen and self._kinds[kind] < LINES_OF_A_KIND
            if written:
                self._seen.add(line)
                self._kinds[kind] += 1
            else:
                self._left_out[text[:200]] += 1
                if len(self._left_out) > LINES_OF_A_KIND:
                    # For many different lines, their total number is enough.
                    self._left_out = Counter({"lines like these": self._left_out.total()})
        if recorded or len(text) > _LINE_CHARACTERS:
            # The first line of a span is always written.
            record.msg, record.args = recorded + text[:_LINE_CHARACTERS], None
        return written

    def _end_span(self) -> str:
        """Begin a new minute if the last one is over; returns a text on the lines that were left out, else empty."""
        now = self._clock.monotonic()
        if now < self._span_end:
            return ""
        recorded = "".join(f"{count} more times in the last minute: {text}\n" for text, count in self._left_out.items())
        self._span_end = now + SPAN_SECONDS
        self._seen.clear()
        self._kinds.clear()
        self._left_out.clear()
        return recorded


class LogRotator:
    """The service's background thread that keeps logs within their size limit."""

    def __init__(self, logs: Callable[[], Iterable[Path]], limit_bytes: int = LIMIT_BYTES) -> None:
        self._logs = logs
        self._limit_bytes = limit_bytes
        self._rounds = Rounds("logs", PERIOD_SECONDS, self.tick, "the logs could not be checked")

    def start(self) -> None:
        self._rounds.start()

    def stop(self) -> None:
        self._rounds.stop()

    def tick(self) -> None:
        for path in self._logs():
            try:
                bound(path, self._limit_bytes)
            except OSError as error:
                _LOG.warning("the log %s cannot be rotated: %s", path, error)


def logs_below(state_directory: Path) -> list[Path]:
    """Logs of the service, of the watchers and of aging drives."""
    outputs = [path for parent in ("stack", "drives") for path in state_directory.glob(f"{parent}/*/output.log")]
    return [state_directory / "service.log", *outputs]
