"""The plain tar of a bundle (POSIX ustar), compressed with zstd, as a stream.

It holds only regular files. The types that make a general tar reader dangerous are refused: links, devices,
directories, sparse files and extended headers.
"""

import tarfile
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa

from cliffwatch.base.memory_limit import memory_errors
from cliffwatch.labs.bundle.manifest import invalid

BLOCK_BYTES = tarfile.BLOCKSIZE
CHUNK_BYTES = 1024 * 1024
_CODEC = "zstd"


class ArchiveWriter:
    """Tar writer: members one after the other; `close` ends the archive and leaves `output` open."""

    def __init__(self, output: BinaryIO, modified: int) -> None:
        """`modified`: modification time of every member, in seconds since the epoch."""
        self._modified = modified
        self._stream: Any = pa.CompressedOutputStream(pa.PythonFile(_Unclosed(output), mode="w"), _CODEC)

    def add(self, name: str, size_bytes: int, chunks: Iterator[bytes]) -> None:
        """Add a member. Raises ValueError if the chunks do not add up to `size_bytes`: the file changed meanwhile."""
        entry = tarfile.TarInfo(name)
        entry.size, entry.mtime, entry.mode = size_bytes, self._modified, 0o644
        self._stream.write(entry.tobuf(tarfile.USTAR_FORMAT))
        written = 0
        for chunk in chunks:
            self._stream.write(chunk)
            written += len(chunk)
        if written != size_bytes:
            raise ValueError(f"{name} changed while it was packed")
        self._stream.write(b"\0" * (-size_bytes % BLOCK_BYTES))

    def close(self) -> None:
        self._stream.write(b"\0" * 2 * BLOCK_BYTES)
        self._stream.close()


class ArchiveReader:
    """Tar reader: members in archive order. Raises Problem(bundle_invalid) for any other format, or damage."""

    def __init__(self, source: BinaryIO) -> None:
        self._stream: Any = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), _CODEC)

    def header(self) -> tuple[str, int]:
        """Name and size in bytes of the next member; read its `content` before the next header."""
        block = self._read(BLOCK_BYTES)
        if block == b"\0" * BLOCK_BYTES:
            raise invalid("archive", "it ends before the last file of its manifest")
        try:
            entry = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except (tarfile.TarError, ValueError) as error:
            raise invalid("archive", f"this is not a plain tar: {error}") from error
        if entry.type != tarfile.REGTYPE:
            raise invalid("archive", f"{entry.name[:200]!r} is not a regular file, and nothing else may be in it")
        if entry.size < 0:
            raise invalid("archive", f"{entry.name[:200]!r} has no size that can be")
        return entry.name, entry.size

    def content(self, size_bytes: int) -> Iterator[bytes]:
        """The content of the member whose header was read last."""
        left = size_bytes
        while left:
            chunk = self._read(min(left, CHUNK_BYTES))
            left -= len(chunk)
            yield chunk
        self._read(-size_bytes % BLOCK_BYTES)

    def end(self) -> None:
        """Check that nothing follows the last member."""
        if self._read(2 * BLOCK_BYTES) != b"\0" * 2 * BLOCK_BYTES or self._some(1):
            raise invalid("archive", "something follows the last file of its manifest")

    def _read(self, size_bytes: int) -> bytes:
        found = bytearray()
        while len(found) < size_bytes:
            chunk = self._some(size_bytes - len(found))
            if not chunk:
                raise invalid("archive", "it is cut off; fetch it again")
            found += chunk
        return bytes(found)

    def _some(self, size_bytes: int) -> bytes:
        try:
            with memory_errors():
                return bytes(self._stream.read(size_bytes))
        except MemoryError:
            raise  # The file is not damaged.
        except (OSError, pa.ArrowException) as error:
            raise invalid("archive", f"this is not compressed with zstd, or it is damaged: {error}") from error


class _Unclosed:
    """A file that stays open when the compressing stream around it is closed."""

    closed = False

    def __init__(self, output: BinaryIO) -> None:
        self.write: Callable[[bytes], int] = output.write
        self.flush: Callable[[], None] = output.flush

    def close(self) -> None:
        self.flush()
