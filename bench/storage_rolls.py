"""Growth of the storage engine's memory and open files over a million segments."""

import time

from bench.figures import Figure
from testkit.storage_rolls import OPEN_FILES, roll

ROLLS = 1_000_000


def figures() -> list[Figure]:
    begun = time.monotonic()
    first, last = roll(ROLLS)
    for seen in (first, last):
        print(f"# {seen.rolls:,} segments: {seen.resident_bytes / 1e6:.2f} MB, {seen.open_files} open files")
    print(f"# {time.monotonic() - begun:.0f} s")
    return [
        Figure(
            "storage, a million segments: memory gained", (last.resident_bytes - first.resident_bytes) / 1e6, "MB", 1
        ),
        Figure("storage, a million segments: most open files", max(first.open_files, last.open_files), "", OPEN_FILES),
    ]
