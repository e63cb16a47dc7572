"""Recovery after a crash: truncate a torn tail behind the last committed window, and keep any other content.

The two files of the windows are each other's second copy: percentiles stand in windows.jsonl, histograms in
latency.hlog. One that is damaged says nothing about how much of the other is worth keeping, so recovery never cuts more
than one window's tail.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.base import durable
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.regular_files import reading

#: A line that was being written when its writer died begins so, as far as it came.
_WINDOW_LINE = b'{"seq":'


@dataclass(frozen=True, slots=True)
class Tail:
    """Tail of a file behind its last complete line, or behind the last committed window's histograms.

    `keep_bytes` is where the file goes on. `torn`: a newline has to close off what is kept before that.
    """

    keep_bytes: int
    discarded_bytes: int
    kept_bytes: int = 0
    torn: bool = False

    def settle(self, descriptor: int) -> None:
        """Truncate the file to its tail's kept bytes, and terminate a torn line.

        That is durable with the next window: what a power cut brings back until then is settled again.
        """
        if self.discarded_bytes:
            os.ftruncate(descriptor, self.keep_bytes)
        if self.torn:
            durable.write_all(descriptor, b"\n")


def read_from(path: Path, offset_bytes: int = 0) -> bytes:
    """Open a file of the journal to read. Raises Problem(journal_unreadable): an unreadable file proves nothing."""
    try:
        with reading(path) as file:
            file.seek(offset_bytes)
            return file.read()
    except OSError as error:
        why = error.strerror or error
        detail = f"{path} cannot be read: {why}; nothing of it was changed"
        raise Problem(Code.JOURNAL_UNREADABLE, detail) from error


def tail_of_windows(content: bytes) -> Tail:
    """The tail of windows.jsonl: the beginning of one line is cut off, anything else is closed off and kept."""
    complete = content.rfind(b"\n") + 1
    tail = content[complete:]
    begun = tail[: len(_WINDOW_LINE)]
    if not tail or (_WINDOW_LINE.startswith(begun) and b"\0" not in tail):
        return Tail(complete, len(tail))
    return Tail(len(content), 0, len(tail), torn=True)


def tail_of_latency(path: Path, committed_bytes: int, *, lines_damaged: bool) -> Tail:
    """The tail of latency.hlog behind `committed_bytes`, the end of the last committed window's histograms.

    One window's histograms, or part of them, are cut off. More than that were committed once, whatever windows.jsonl
    says of them now, and so was what belongs to its damaged lines: that is kept, and only half a line goes.
    """
    content = read_from(path, committed_bytes)
    if not committed_bytes:
        committed_bytes = _header_bytes(content)
        content = content[committed_bytes:]
    whole = content.rfind(b"\n") + 1
    starts = {line.split(b",", 2)[1] for line in content[:whole].splitlines() if line.count(b",") >= 2}
    if len(starts) <= 1 and b"\0" not in content and not lines_damaged:
        return Tail(committed_bytes, len(content))
    return Tail(committed_bytes + whole, len(content) - whole, whole)


def _header_bytes(content: bytes) -> int:
    """Length of the lines before the first interval; 0 where they are incomplete."""
    end = 0
    for line in content.splitlines(keepends=True):
        if line.startswith(b"Tag=") or not line.endswith(b"\n"):
            break
        end += len(line)
        if line.startswith(b'"StartTimestamp"'):
            return end
    return 0
