"""Limit this process's memory (RLIMIT_AS): a number of bytes on top of what it needed to start."""

import errno
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Environment of a process with such a limit: Arrow's own allocator reserves a gigabyte of addresses at once, and every
#: arena of malloc some more, all of which count towards the limit.
ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2", "OPENBLAS_NUM_THREADS": "1"}


def limit_memory(limit_bytes: int) -> None:
    """Limit this process's address space from here on; a larger allocation raises MemoryError."""
    started = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    lower(resource.RLIMIT_AS, started + limit_bytes)


@contextmanager
def memory_errors() -> Iterator[None]:
    """Raise MemoryError for every exception caused by lack of memory: FreeType, the dynamic linker, the kernel and
    CPython's own C code report it in other ways."""
    try:
        yield
    except Exception as error:
        if isinstance(error, MemoryError) or not _is_want_of_memory(error):
            raise
        raise MemoryError(str(error)) from error


#: Messages of libraries without memory. The last one is FreeType's when Python had no memory to read a font for it.
_WORDS = (
    "out of memory",
    "not enough memory",
    "cannot allocate memory",
    "failed to map segment",
    "invalid stream operation",
)
#: Messages of the interpreter on C code that fails without an exception, as json's does without memory for one.
_FORGOTTEN = ("without exception set", "without setting an exception")


def _is_want_of_memory(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    said = str(error).casefold()
    if isinstance(error, SystemError):
        return any(words in said for words in _FORGOTTEN)
    return any(words in said for words in _WORDS)


def lower(kind: int, limit: int) -> None:
    """Set a limit of this process, `resource.RLIMIT_…`, but never above its current hard limit."""
    _, hard = resource.getrlimit(kind)
    given = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(kind, (given, given))
