"""A file system in user space with one file in it, which says what a relay of another file would say of that."""

import ctypes
import os
import stat
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from testkit.loops import command

_NAME = b"disk.img"
_ROOT, _FILE = 1, 2
_SECONDS = 3600
#: struct fuse_in_header of linux/fuse.h.
_ASKED = struct.Struct("=IIQQIIIHH")
_INIT, _LOOKUP, _GETATTR, _OPEN, _FORGET, _INTERRUPT, _BATCH_FORGET = 26, 1, 3, 14, 2, 36, 42
_FLUSH, _RELEASE = 25, 18
_UNANSWERED = (_FORGET, _INTERRUPT, _BATCH_FORGET)


@contextmanager
def fuse_file(point: Path, size_bytes: int, source: str = "relay", user_id: int = 0) -> Iterator[Path]:
    """The file, of that size, on a FUSE mounted at `point` as by that user, which the block may unmount lazily. It is
    never read."""
    point.mkdir()
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id={user_id},group_id=0,allow_other".encode()
    library = ctypes.CDLL(None, use_errno=True)
    assert library.mount(source.encode(), os.fsencode(point), b"fuse", 0, options) == 0, os.strerror(ctypes.get_errno())
    daemon = threading.Thread(target=_answer, args=(device, size_bytes), daemon=True)
    daemon.start()
    try:
        yield point / os.fsdecode(_NAME)
    finally:
        if point.is_mount():
            command("umount", point)
        daemon.join()
        os.close(device)


def _answer(device: int, size_bytes: int) -> None:
    while True:
        try:
            request = os.read(device, 1 << 20)
        except OSError:
            return  # It is unmounted, and no process has the file open any more.
        _, operation, unique, node = _ASKED.unpack_from(request)[:4]
        if operation in _UNANSWERED:
            continue
        error, body = _answer_to(operation, node, request[_ASKED.size :], size_bytes)
        # It may not be asked any more: the process was interrupted, or the mount was given up meanwhile.
        with suppress(FileNotFoundError):
            os.write(device, struct.pack("=IiQ", 16 + len(body), -error, unique) + body)


def _answer_to(operation: int, node: int, asked: bytes, size_bytes: int) -> tuple[int, bytes]:
    if operation == _INIT:
        return 0, struct.pack("=IIIIHHI", 7, 31, 0, 0, 16, 8, 1 << 17).ljust(64, b"\0")
    if operation == _LOOKUP and asked.rstrip(b"\0") == _NAME:
        return 0, struct.pack("=QQQQII", _FILE, 0, _SECONDS, _SECONDS, 0, 0) + _attributes(_FILE, size_bytes)
    if operation == _GETATTR:
        return 0, struct.pack("=QII", _SECONDS, 0, 0) + _attributes(node, size_bytes)
    if operation == _OPEN:
        return 0, bytes(16)
    return (0 if operation in (_FLUSH, _RELEASE) else 2), b""


def _attributes(node: int, size_bytes: int) -> bytes:
    """struct fuse_attr."""
    mode = stat.S_IFDIR | 0o755 if node == _ROOT else stat.S_IFREG | 0o600
    size = size_bytes if node == _FILE else 0
    return struct.pack("=QQQQQQIIIIIIIIII", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)
