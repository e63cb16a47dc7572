"""Recovery after a crash: truncate a torn tail after the last committed window, and keep any other content.

windows.jsonl has the percentiles, and latency.hlog the histograms, of the same windows. Damage in one of the two files
is no reason to discard content of the other, so recovery never removes more than the tail of one window.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.base import durable
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.regular_files import reading

#: Beginning of a window's line, also of one that was incomplete when its writer died.
_WINDOW_LINE = b'{"seq":'


@dataclass(frozen=True, slots=True)
class Tail:
    """What recovery does with the end of a journal file: how many bytes of it are discarded, how many are kept.

    `keep_bytes` is the length to which the file is truncated. `torn`: a newline has to be appended, since the kept
    content ends within a line.
    """

    keep_bytes: int
    discarded_bytes: int
    kept_bytes: int = 0
    torn: bool = False

    def settle(self, descriptor: int) -> None:
        """Truncate the file to `keep_bytes`, and terminate a torn line.

        The change is durable with the next window; if a power cut undoes it before, recovery repeats it.
        """
        if self.discarded_bytes:
            os.ftruncate(descriptor, self.keep_bytes)
        if self.torn:
            durable.write_all(descriptor, b"\n")


def read_from(path: Path, offset_bytes: int = 0) -> bytes:
    """Content of a file of the journal from an offset on.

    Raises Problem(journal_unreadable): recovery must not treat an unreadable file as empty.
    """
    try:
        with reading(path) as file:
            file.seek(offset_bytes)
            return file.read()
    except OSError as error:
        why = error.strerror or error
        detail = f"{path} cannot be read: {why}; nothing of it was changed"
        raise Problem(Code.JOURNAL_UNREADABLE, detail) from error


def tail_of_windows(content: bytes) -> Tail:
    """Tail of windows.jsonl: an incomplete window line is discarded, anything else is kept and terminated."""
    complete = content.rfind(b"\n") + 1
    tail = content[complete:]
    begun = tail[: len(_WINDOW_LINE)]
    if not tail or (_WINDOW_LINE.startswith(begun) and b"\0" not in tail):
        return Tail(complete, len(tail))
    return Tail(len(content), 0, len(tail), torn=True)


def tail_of_latency(path: Path, committed_bytes: int, *, lines_damaged: bool) -> Tail:
    """Tail of latency.hlog after `committed_bytes`, the end of the last committed window's histograms.

    Histograms of one window, complete or not, are discarded. Histograms of several windows were committed, although
    windows.jsonl lacks their lines now; those of one window may have been, if it has damaged lines (`lines_damaged`).
    They are kept, and only an incomplete last line is discarded.
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
    """Length of the header lines before the first interval; 0 where they are incomplete."""
    end = 0
    for line in content.splitlines(keepends=True):
        if line.startswith(b"Tag=") or not line.endswith(b"\n"):
            break
        end += len(line)
        if line.startswith(b'"StartTimestamp"'):
            return end
    return 0
