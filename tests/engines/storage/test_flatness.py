"""What a load costs does not grow with time: memory and open files over tens of thousands of segments."""

import os
import shutil
from pathlib import Path

from tests.engines.storage.running import load_of, running


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def test_memory_and_open_files_are_flat_over_many_segments(tmp_path: Path) -> None:
    # Segments of two batches, on a file system in memory: a roll for every second append.
    place = Path("/dev/shm") / f"cliffwatch-flat-{os.getpid()}"
    place.mkdir()
    load = load_of(
        style="kafka",
        partitions=4,
        record_size="64B",
        batch_records=4,
        rate="1MB",
        retention_size="1MiB",
        style_changes={"segment_size": "16KiB", "chunk_size": "4KiB", "threads": 1, "sync_on_roll": False},
        verify_size="0B",
    )
    try:
        with running(load, place / "data", 12, window_seconds=1.0) as at_work:
            for _ in range(3):
                at_work.read_until("window")
            before = _resident_bytes(at_work.process.pid), _open_files(at_work.process.pid)
            for _ in range(8):
                at_work.read_until("window")
            after = _resident_bytes(at_work.process.pid), _open_files(at_work.process.pid)
            outcome = at_work.finish()
    finally:
        shutil.rmtree(place)
    assert outcome.counters["segments_begun"] > 500
    assert after[0] - before[0] < 512 * 1024
    assert abs(after[1] - before[1]) <= 4
