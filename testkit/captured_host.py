"""A captured tree of /proc and of control groups, with every figure of the host that a window can hold."""

import os
from pathlib import Path

from cliffwatch.part.host import HostConditions
from cliffwatch.part.interval import Interval

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Ticking:
    """Fake clock: each reading of `monotonic` advances it by 10 s."""

    def __init__(self) -> None:
        self.now = 0.0

    def wall(self) -> float:
        return self.now

    def monotonic(self) -> float:
        self.now += 10.0
        return self.now

    def suspended(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing waits on this clock")


def captured_interval(directory: Path) -> Interval:
    """Counters and gauges of the ten seconds between two readings of the tree; each total grew by a known amount."""
    proc, cgroup = directory / "proc", directory / "cgroup"
    for place in (
        proc / "41" / "task" / "41",
        proc / "41" / "task" / "42",
        proc / "pressure",
        cgroup / "soak" / "engine",
    ):
        place.mkdir(parents=True)
    (cgroup / "cgroup.controllers").write_text("cpu\n")
    (proc / "41" / "cgroup").write_text("0::/soak/engine\n")
    (proc / "vmstat").write_text("nr_dirty 10\nnr_writeback 3\nnr_writeback_temp 9\nnr_dirty_threshold 100\n")

    def write(ticks: int, cpu: str, stalled: int, waited: int, throttled: int, written: int) -> None:
        (proc / "41" / "stat").write_text(f"41 (a (b) c) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 1 0 0 20 0\n")
        (proc / "41" / "io").write_text(f"rchar: 1\nread_bytes: 512\nwrite_bytes: {written}\n")
        (proc / "stat").write_text(f"cpu  {cpu} 0 0\ncpu0 1 1\n")
        (proc / "pressure" / "io").write_text(f"some avg10=0.00 total={stalled}\nfull avg10=0.00 total=0\n")
        (proc / "pressure" / "cpu").write_text(f"some avg10=0.00 total={waited}\nfull avg10=0.00 total=0\n")
        for thread in ("41", "42"):
            (proc / "41" / "task" / thread / "schedstat").write_text(f"9 {throttled * 30} 7\n")
        (cgroup / "soak" / "cpu.stat").write_text(f"nr_periods 5\nthrottled_usec {throttled}\n")
        (cgroup / "soak" / "engine" / "cpu.stat").write_text("nr_periods 0\nthrottled_usec 0\n")

    write(100, "100 0 50 800 20 10 10 10", 1_000_000, 7_000_000, 2_000_000, 4096)
    conditions = HostConditions(Ticking(), proc, cgroup)
    conditions.restart(41)
    write(150, "140 0 60 830 30 10 10 20", 3_000_000, 11_000_000, 2_500_000, 12_288)
    return conditions.since_last()
