"""Limit of concurrent runs by the machine's memory, which each run's worker and engine need."""

import os

#: What a run's worker and engine need, its report included, and a multiple of what they need as a rule.
_RUN_BYTES = 512 * 1024**2
#: Lower bound of the limit: enough for what is tried on a small machine.
_LEAST = 4


def memory_bytes() -> int:
    """Memory of the machine, in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def active_limit() -> int:
    """Limit of concurrent runs; further ones wait, however free their targets are."""
    return max(_LEAST, memory_bytes() // _RUN_BYTES)
