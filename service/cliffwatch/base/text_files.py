"""Open text files as people have them: gzip, xz or bzip2 by content, UTF-8 or UTF-16, any line ends."""

import bz2
import codecs
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

#: First bytes of the compressions that are read; by name, for errors.
_COMPRESSED: dict[bytes, tuple[str, Callable[[Path, str], Any]]] = {
    b"\x1f\x8b": ("gzip", gzip.open),
    b"\xfd7zXZ\x00": ("xz", lzma.open),
    b"BZh": ("bzip2", bz2.open),
}
#: First bytes of files that are not read, and what to do.
_REFUSED = {
    b"\x28\xb5\x2f\xfd": "it is compressed with zstd, which is not read; decompress it with `zstd -d`",
    b"\x04\x22\x4d\x18": "it is compressed with lz4, which is not read; decompress it with `lz4 -d`",
    b"PK\x03\x04": "it is a ZIP archive or an Excel workbook; unpack it, or save the sheet as CSV",
}
_HEAD_BYTES = 256


class UnreadableTextError(ValueError):
    """File that is no text that can be read; the message says what it is, and what to do."""


@contextmanager
def opened_text(path: Path, errors: str = "strict") -> Iterator[TextIO]:
    """Open a file as text, by its content and not by its name. `errors`: as of `open`. Raises UnreadableTextError, also
    while it is read, and OSError."""
    with path.open("rb") as raw:
        head = raw.read(_HEAD_BYTES)
    for mark, why in _REFUSED.items():
        if head.startswith(mark):
            raise UnreadableTextError(why)
    name, open_ = next((each for mark, each in _COMPRESSED.items() if head.startswith(mark)), ("", None))
    if open_ is None:
        with path.open("rb") as file:
            yield TextIOWrapper(file, encoding=_encoding(head), errors=errors)
        return
    try:
        with open_(path, "rb") as unpacked:
            head = unpacked.read(_HEAD_BYTES)
        with open_(path, "rb") as unpacked:
            yield TextIOWrapper(unpacked, encoding=_encoding(head), errors=errors)
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise UnreadableTextError(f"it is no whole {name} file: {error}") from error
    except OSError as error:
        # What bzip2 raises for damage has no number.
        if error.errno is not None:
            raise
        raise UnreadableTextError(f"it is no whole {name} file: {error}") from error


def _encoding(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    # Text in UTF-16 without a mark: each second byte of the beginning is zero.
    if len(head) >= 4 and not any(head[1:16:2]) and all(head[0:16:2]):
        return "utf-16-le"
    if len(head) >= 4 and not any(head[0:16:2]) and all(head[1:16:2]):
        return "utf-16-be"
    return "utf-8-sig"
