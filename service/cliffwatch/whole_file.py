"""A file that somebody asked for by name, whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which has its name only once it is whole. Raises OSError, and then leaves nothing.

    What is there and is no plain file is written through, since taking its place would destroy it: a device such as
    /dev/null, a pipe, a link such as /dev/stdout.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        with path.open("wb") as file:
            yield file
        return
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            yield file
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
