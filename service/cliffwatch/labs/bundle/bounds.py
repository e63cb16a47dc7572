"""Kernel limits on the process that opens a bundle: memory, CPU time and file size.

Zstandard can expand a few kilobytes to gigabytes, so a small upload may be large when opened. The process has no
children, so a control group of its own would add nothing; the service's control group limits both processes.
"""

import resource
import signal

from cliffwatch.base.memory_limit import limit_memory, lower
from cliffwatch.base.units import format_duration, format_size

#: Memory on top of what the process needs to start. The bundle of a run of 36 h takes some 200 MiB.
MEMORY_LIMIT_BYTES = 1024**3
CPU_LIMIT_SECONDS = 600
FILE_LIMIT_BYTES = 8 * 1024**3
#: Most events and windows of an imported run. A run of 36 h has some 13,000 windows, and some hundred events, which the
#: service reads all at once.
EVENTS_LIMIT = 50_000
WINDOWS_LIMIT = 500_000
#: Windows that are accepted beyond the planned number, for those that a worker recorded at the end of the run.
SPARE_WINDOWS = 16
#: Limit of the unpacked size: a fixed allowance plus a multiple of the bundle's size. Journals shrink to a tenth.
FREE_EXPANSION_BYTES = 64 * 1024**2
EXPANSION_LIMIT = 200


def limit_this_process() -> None:
    """Limit memory, CPU time and file size of this process from here on."""
    limit_memory(MEMORY_LIMIT_BYTES)
    lower(resource.RLIMIT_CPU, CPU_LIMIT_SECONDS)
    lower(resource.RLIMIT_FSIZE, FILE_LIMIT_BYTES)
    lower(resource.RLIMIT_CORE, 0)


def out_of_memory() -> str:
    return f"opening it takes more than {format_size(MEMORY_LIMIT_BYTES)} of memory (RLIMIT_AS)"


def what_ended(status: int) -> str | None:
    """Limit or signal that ended the process that opened a bundle, by its exit status; None if no signal did."""
    if status == -signal.SIGXCPU:
        return f"opening it takes more than {format_duration(CPU_LIMIT_SECONDS)} of CPU time (RLIMIT_CPU)"
    if status == -signal.SIGXFSZ:
        return f"a file of it has more than {format_size(FILE_LIMIT_BYTES)} (RLIMIT_FSIZE)"
    if status == -signal.SIGKILL:
        return "the process that opened it was killed, as a control group does whose memory is used up"
    if status < 0:
        return f"the process that opened it was ended by {signal.Signals(-status).name}"
    return None
