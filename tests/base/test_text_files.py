"""Text files as Excel, PowerShell and log rotation make them."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from cliffwatch.base.text_files import UnreadableTextError, opened_text

TEXT = "elapsed_seconds,p99\n0,0.5\n10,0.6\n"


def lines(path: Path) -> list[str]:
    with opened_text(path) as file:
        return [line.rstrip("\n") for line in file]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, bz2.compress])
def test_encodings_and_compressions_are_found_by_content(
    tmp_path: Path, pack: Callable[[bytes], bytes], encoding: str, ends: str
) -> None:
    path = tmp_path / "any name"
    path.write_bytes(pack(TEXT.replace("\n", ends).encode(encoding)))
    assert lines(path) == TEXT.splitlines()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x28\xb5\x2f\xfd rest", "it is compressed with zstd, which is not read; decompress it with `zstd -d`"),
        (b"\x04\x22\x4d\x18 rest", "lz4 -d"),
        (b"PK\x03\x04 rest", "it is a ZIP archive or an Excel workbook"),
        (gzip.compress(TEXT.encode(), mtime=0)[:20], "it is no whole gzip file"),
        (lzma.compress(TEXT.encode())[:40], "it is no whole xz file"),
        (bz2.compress(TEXT.encode())[:30], "it is no whole bzip2 file"),
        (b"BZh9 and no more of it than a name", "it is no whole bzip2 file"),
    ],
)
def test_an_unreadable_compressed_file_is_refused_with_its_format(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "soak.csv"
    path.write_bytes(content)
    with pytest.raises(UnreadableTextError, match=said.replace("(", r"\(")):
        lines(path)


def test_a_file_that_is_not_there_and_one_in_another_encoding(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        lines(tmp_path / "nowhere")
    (tmp_path / "latin").write_bytes("dauer_in_größe".encode("latin-1"))
    with pytest.raises(UnicodeDecodeError):
        lines(tmp_path / "latin")
    (tmp_path / "empty").write_bytes(b"")
    assert lines(tmp_path / "empty") == []
