"""Memory and open files do not grow with the segments that were rolled, nor with those that wait to be closed.

`python -m bench storage-rolls` does the same with a million.
"""

import os
import shutil
from pathlib import Path

from testkit.storage_engine import load_of, running
from testkit.storage_rolls import LOAD, OPEN_FILES, roll


def test_memory_and_open_files_are_flat_over_many_segments() -> None:
    before, after = roll(40_000)
    assert after.rolls - before.rolls > 15_000
    assert after.resident_bytes - before.resident_bytes < 1024 * 1024
    assert max(before.open_files, after.open_files) <= OPEN_FILES


def test_segments_that_are_closed_more_slowly_than_they_roll_are_no_more_open_files_than_were_counted() -> None:
    place = Path("/dev/shm") / f"cliffwatch-slow-{os.getpid()}"  # in memory, under a name of this process's own
    place.mkdir()
    try:
        with running(load_of(**LOAD), place / "data", 60, preexec=_keep_to_one_processor) as at_work:
            at_work.read_until("window")
            (facts,) = at_work.outcome.events("storage")
            process = Path(f"/proc/{at_work.process.pid}")
            _starve(process, "seal")
            open_files = 0
            while at_work.outcome.counters["segments_begun"] < 20_000:
                at_work.read_until("window")
                open_files = max(open_files, len(list((process / "fd").iterdir())))
    finally:
        shutil.rmtree(place)
    assert open_files <= facts["open_files"]


def _keep_to_one_processor() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _starve(process: Path, name: str) -> None:
    """Let threads of this name run only while no other thread wants the processor."""
    for task in (process / "task").iterdir():
        if (task / "comm").read_text().strip() == name:
            os.sched_setscheduler(int(task.name), os.SCHED_IDLE, os.sched_param(0))
