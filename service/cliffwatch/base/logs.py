"""Log files of bounded size: repeated lines are counted, and a file that grows too long is copied and truncated.

The files are the standard error of processes that keep them open for appending: the service, its workers, the
watchers, aging drives. So none is renamed; what it held is copied beside it, as `.old`, and the file itself is emptied.
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

#: A file holds so much, and the one beside it as much again.
LIMIT_BYTES = 10 * 1024**2
#: How much a file may grow beyond that is what is written meanwhile.
PERIOD_SECONDS = 2.0
SPAN_SECONDS = 60.0
#: Lines of one kind, with whatever in them, that are written in a span: who asks for what is not there sends many.
LINES_OF_A_KIND = 20
_LINE_CHARACTERS = 8000
_LAST_LINE_BYTES = 4096
_LOG = logging.getLogger(__name__)


def open_log(path: Path) -> BinaryIO:
    """A log for a process to write to; it is made for its owner alone. Raises OSError."""
    return open(path, "ab", opener=open_regular)


def last_line(text: str) -> str:
    """The last line that is not empty, which says best why a process ended; empty where there is none."""
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
    """Truncate a log that is longer than it may be; its newest part is copied beside it. Raises OSError."""
    try:
        size_bytes = path.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return
    if size_bytes <= limit_bytes:
        return
    old = path.with_suffix(".old")
    try:
        # First: a disk that is full has room for the copy then.
        old.unlink(missing_ok=True)
        with path.open("rb") as log, open(old, "xb", opener=durable.private) as kept:
            log.seek(max(0, size_bytes - limit_bytes))
            shutil.copyfileobj(log, kept)
    finally:
        # Also where it cannot be kept: a log fills no disk.
        os.truncate(path, 0)


class Repetitions(logging.Filter):
    """Log filter: of equal lines in a minute the first is written, of each kind a few; the next minute counts the
    rest."""

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
                    # Of many different ones their number says enough.
                    self._left_out = Counter({"lines like these": self._left_out.total()})
        if recorded or len(text) > _LINE_CHARACTERS:
            # The first of a span is always written.
            record.msg, record.args = recorded + text[:_LINE_CHARACTERS], None
        return written

    def _end_span(self) -> str:
        """Message on lines left out in the span that is over; empty where there are none."""
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
    """The service's background thread that keeps logs within their bound."""

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
