"""The journal of a run whose writes fell off a cliff, on a drive that became slow."""

from collections.abc import Callable

import numpy as np
from testkit.recorded_runs import JournalPlan

from cliffwatch.base.histogram import Histogram

WINDOWS, CLIFF = 660, 300
OPERATIONS = 1000
BYTES = OPERATIONS * 16_384
DRIVE = {"name": "nvme0n1", "major_minor": "259:0", "serial": "S1AGING"}
FACTS = {"target": {"kind": "directory"}, "drives": [DRIVE], "file_system": {"mount_point": "/data"}}


def latency(index: int, before: float = 0.001, after: float = 0.030) -> dict[str, Histogram]:
    """Seconds; the 99th percentile is three times the median, and no two windows are alike."""
    noise = np.random.default_rng(index)
    median = (before if index < CLIFF else after) * float(np.exp(noise.normal(0, 0.05)))
    histogram = Histogram()
    histogram.record_many(np.rint(noise.lognormal(np.log(median), 0.45, OPERATIONS) * 1e9).astype(np.int64))
    return {"write": histogram}


def counters(
    milliseconds: tuple[int, int] = (900, 29_000), others: tuple[int, int] = (0, 0), held: tuple[int, int] = (0, 0)
) -> Callable[[int], dict[str, int]]:
    """What windows of 10 s count, before and after: time of the drive's writes, others' bytes, throttling."""

    def of_window(index: int) -> dict[str, int]:
        side = int(index >= CLIFF)
        return {
            "written_bytes": BYTES,
            "device_written_bytes": BYTES + others[side],
            "device_read_bytes": 0,
            "device_write_operations": OPERATIONS + others[side] // 4096,
            "device_write_milliseconds": milliseconds[side],
            "device_read_operations": 0,
            "device_read_milliseconds": 0,
            "engine_throttled_milliseconds": held[side],
        }

    return of_window


PLAN = JournalPlan(
    windows=WINDOWS, baseline_windows=60, target="directory:/data", facts=FACTS, latency=latency, counters=counters()
)
