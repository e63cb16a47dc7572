"""Memory, open files, CPU time and bytes read of a process, from /proc."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProcessCost:
    """`memory_bytes` is the proportional set size, in which shared pages are divided among their users; `cpu_seconds`
    (user and system) and `read_bytes` (by all read calls) count since the process began."""

    memory_bytes: int
    open_files: int
    cpu_seconds: float
    read_bytes: int


def cost_of(pid: int) -> ProcessCost | None:
    """Read the cost of a process from /proc, see proc(5). None once the process is gone."""
    process = Path(f"/proc/{pid}")
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
        proportional = _value((process / "smaps_rollup").read_text(), "Pss:")
        read = _value((process / "io").read_text(), "rchar:")
        open_files = sum(1 for _ in (process / "fd").iterdir())
    except (FileNotFoundError, ProcessLookupError, PermissionError, StopIteration):
        return None
    ticks = int(fields[11]) + int(fields[12])
    return ProcessCost(proportional * 1024, open_files, ticks / os.sysconf("SC_CLK_TCK"), read)


def _value(text: str, name: str) -> int:
    return int(next(line for line in text.splitlines() if line.startswith(name)).split()[1])
