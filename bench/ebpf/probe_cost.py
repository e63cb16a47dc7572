"""Overhead of the block-layer probe: the kernel's own statistics of its programs, and fio with and without it.

Runs on a loop device over memory, the fastest drive there is: the worst case for a cost per request.
"""

import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from bench.figures import Figure
from testkit.loops import MIB, LoopDrive, loop_drive
from testkit.probe import Probe, build, fio, running_probe

DEPTHS = (1, 32)
ROUNDS = 9
SECONDS = 1
MOST_MICROSECONDS_PER_REQUEST = 0.4
LEAST_IOPS_RATIO = 0.85
ACCOUNTING = Path("/proc/sys/kernel/bpf_stats_enabled")


def figures() -> list[Figure]:
    """The cost per request, and the ratio of IOPS with the probe to IOPS without it, at each queue depth."""
    build()
    with drive_in_memory() as drive:
        costs = {depth: microseconds_per_request(drive, depth) for depth in DEPTHS}
        ratios = iops_ratios(drive)
    return [
        *(
            Figure(
                f"block-layer probe, all programs per request, depth {depth}", cost, "µs", MOST_MICROSECONDS_PER_REQUEST
            )
            for depth, cost in costs.items()
        ),
        *(
            Figure(f"IOPS with the probe to IOPS without, depth {depth}", ratio, "", LEAST_IOPS_RATIO, at_least=True)
            for depth, ratio in ratios.items()
        ),
    ]


@contextmanager
def drive_in_memory() -> Iterator[LoopDrive]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        file = Path(directory) / "drive.img"
        file.write_bytes(bytes(128 * MIB))
        with loop_drive(file) as drive:
            yield drive


@contextmanager
def accounting() -> Iterator[None]:
    """Turn on the kernel's statistics of BPF programs for the block only: they cost time themselves."""
    before = ACCOUNTING.read_text()
    ACCOUNTING.write_text("1")
    try:
        yield
    finally:
        ACCOUNTING.write_text(before)


def load(drive: LoopDrive, depth: int) -> float:
    """IOPS of a load of random reads and writes."""
    job = fio(drive.node, rw="randrw", iodepth=depth, size="128m", time_based=1, runtime=SECONDS)
    return float(job["read"]["iops"] + job["write"]["iops"])


def microseconds_per_request(drive: LoopDrive, depth: int) -> float:
    """Time in all BPF programs per completion that they saw. The least of several loads: interrupts only add to it."""

    def nanoseconds_and_requests(probe: Probe) -> tuple[int, int]:
        costs = probe.costs()
        return sum(cost.nanoseconds for cost in costs), max(cost.runs for cost in costs)

    taken = []
    with running_probe() as probe, accounting():
        for _ in range(ROUNDS):
            nanoseconds_before, requests_before = nanoseconds_and_requests(probe)
            load(drive, depth)
            nanoseconds, requests = nanoseconds_and_requests(probe)
            taken.append((nanoseconds - nanoseconds_before) / (requests - requests_before) / 1000)
    return min(taken)


def iops_ratios(drive: LoopDrive) -> dict[int, float]:
    """IOPS with the probe / IOPS without it, by queue depth: the median of rounds that each run the load both ways.

    Each way comes first in every other round, so that other activity of the machine affects both.
    """
    ratios: dict[int, list[float]] = {depth: [] for depth in DEPTHS}
    for turn in range(ROUNDS):
        for depth in DEPTHS:
            iops = {}
            for with_probe in (False, True) if turn % 2 else (True, False):
                with running_probe() if with_probe else nullcontext():
                    iops[with_probe] = load(drive, depth)
            ratios[depth].append(iops[True] / iops[False])
    return {depth: statistics.median(found) for depth, found in ratios.items()}


if __name__ == "__main__":
    for figure in figures():
        print(figure)
