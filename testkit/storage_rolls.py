"""Memory and open files of the storage engine's program while it rolls and deletes segments as fast as it can.

Segments are as short as possible and in memory, so that within minutes as many roll as on a broker's disk in years.
They have indexes and are deleted by retention like any others.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testkit.storage_engine import Running, load_of, running

#: When the first measurement is made, as a share of all rolls.
FIRST = 0.01
PATIENCE_SECONDS = 3600.0
PARTITIONS = 64
#: Limit: each partition's active segment and the one before it, which is being closed, and other files of the program.
OPEN_FILES = 2 * PARTITIONS + 16
#: Segments of two batches each.
LOAD: dict[str, Any] = {
    "style": "kafka",
    "partitions": PARTITIONS,
    "record_size": "4KiB",
    "batch_records": 2,
    "retention_size": "8MiB",
    # More than a processor can write, so that segments roll as fast as possible.
    "rate": "500MB",
    "burst_limit": "1s",
    "verify_size": "0B",
    "style_changes": {
        "segment_size": "16KiB",
        "segment_jitter": 0,
        "chunk_size": "8KiB",
        "threads": 1,
        "sync_on_roll": False,
        "background_threads": 1,
    },
}


@dataclass(frozen=True, slots=True)
class Look:
    """Memory of the program once `rolls` segments have been begun, and the most open files seen until then.

    Memory is without shared pages: mapped pages of indexes come and go with the open files.
    """

    rolls: int
    resident_bytes: int
    open_files: int


def roll(rolls: int) -> tuple[Look, Look]:
    """Run the program and measure it after the share FIRST of `rolls`, and after all of them."""
    place = Path("/dev/shm") / f"cliffwatch-rolls-{os.getpid()}"  # in memory, under a name of this process's own
    place.mkdir()
    try:
        with running(load_of(**LOAD), place / "data", PATIENCE_SECONDS, window_seconds=1.0) as at_work:
            return _look_after(at_work, rolls * FIRST), _look_after(at_work, rolls)
    finally:
        shutil.rmtree(place)


def _look_after(at_work: Running, rolls: float) -> Look:
    process = Path(f"/proc/{at_work.process.pid}")
    begun, open_files = 0, 0
    while (begun := at_work.outcome.counters["segments_begun"]) < rolls:
        at_work.read_until("window")
        open_files = max(open_files, len(list((process / "fd").iterdir())))
    _, resident, shared, *_ = map(int, (process / "statm").read_text().split())
    return Look(begun, (resident - shared) * os.sysconf("SC_PAGE_SIZE"), open_files)
