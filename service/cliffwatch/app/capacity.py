"""How many runs a machine takes at once: the worker and the engine of each need memory while it goes on."""

import os

#: What a run's worker and engine need, its report included, and a multiple of what they need as a rule.
_RUN_BYTES = 512 * 1024**2
#: Lower bound of the limit: enough for what is tried on a small machine.
_LEAST = 4


def memory_bytes() -> int:
    """Of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def active_limit() -> int:
    """More runs than that wait, however free their targets are."""
    return max(_LEAST, memory_bytes() // _RUN_BYTES)
