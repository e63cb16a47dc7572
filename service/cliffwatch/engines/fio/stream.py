"""Split fio's standard output into JSON objects and the lines of text between them.

`--status-interval` makes fio print an object for each interval, which together are not a JSON document, and messages go
in between. fio writes each object in one piece, its first and last brace alone on a line.
"""

from dataclasses import dataclass
from typing import Any

from cliffwatch.base.finite_json import lenient_json

#: Longest JSON object that is read; fio's are some 100 KiB with full bins of reads, writes and syncs.
OBJECT_LIMIT_BYTES = 16 * 1024 * 1024
TEXT_LIMIT_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Text:
    """Line of text that fio wrote for people."""

    line: str


@dataclass(frozen=True, slots=True)
class Damaged:
    """An object that could not be read, and why."""

    reason: str


Piece = dict[str, Any] | Text | Damaged


class OutputStream:
    """Splitter of fio's output. Chunks may end anywhere; only the incomplete object is kept in memory."""

    def __init__(self) -> None:
        self._rest = b""
        self._object: list[bytes] | None = None
        self._object_bytes = 0

    def feed(self, chunk: bytes) -> list[Piece]:
        """The pieces that `chunk` completes."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > OBJECT_LIMIT_BYTES:
            self._rest = b""
        return [piece for line in lines for piece in self._line(line)]

    def finish(self) -> list[Piece]:
        """Pieces that the end of the output completes or cuts off."""
        pieces = self._line(self._rest) if self._rest else []
        self._rest = b""
        if self._object is not None:
            self._object = None
            pieces.append(Damaged("the output ends within it"))
        return pieces

    def _line(self, line: bytes) -> list[Piece]:
        if line == b"{":
            cut: list[Piece] = [] if self._object is None else [Damaged("another begins within it")]
            self._object, self._object_bytes = [line], 0
            return cut
        if self._object is None:
            text = line[:TEXT_LIMIT_BYTES].decode("utf-8", "replace").strip()
            return [Text(text)] if text else []
        self._object.append(line)
        self._object_bytes += len(line)
        if line == b"}":
            whole, self._object = b"\n".join(self._object), None
            return [_parsed(whole)]
        if self._object_bytes > OBJECT_LIMIT_BYTES:
            self._object = None
            return [Damaged(f"it is longer than {OBJECT_LIMIT_BYTES} bytes")]
        return []


def _parsed(whole: bytes) -> Piece:
    try:
        document: dict[str, Any] = lenient_json(whole)[0]
    except ValueError as error:
        return Damaged(str(error))
    return document
