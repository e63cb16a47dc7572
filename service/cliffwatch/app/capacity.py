"""Limit of concurrent runs by the machine's memory, since each run needs a worker and an engine."""

import os

#: Memory for a run's worker, engine and report: a multiple of what they usually need.
_RUN_BYTES = 512 * 1024**2
#: Lower bound of the limit, so that a small machine can run trials.
_LEAST = 4


def memory_bytes() -> int:
    """Memory of the machine, in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def active_limit() -> int:
    """Limit of concurrent runs; further runs wait, even if their targets are free."""
    return max(_LEAST, memory_bytes() // _RUN_BYTES)
