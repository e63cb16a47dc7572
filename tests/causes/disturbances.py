"""What is done to a run: a processor limit, a neighbour, a full page cache, a watch over the drive's own counters."""

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from testkit.waiting import wait_until
from tests.causes.stage import RunInProgress
from tests.report.telemetry_files import write_telemetry

from cliffwatch.labs.aging.lifecycle import AgingDrive

_GROUPS = Path("/sys/fs/cgroup")
_PERIOD_MICROSECONDS = 100_000


class ProcessorLimit:
    """A control group of its own, of either version, whose processes get a part of one processor."""

    def __init__(self, name: str, share: float) -> None:
        quota = round(share * _PERIOD_MICROSECONDS)
        if (_GROUPS / "cpu").is_dir():
            self._group = _GROUPS / "cpu" / name
            limits = {"cpu.cfs_period_us": str(_PERIOD_MICROSECONDS), "cpu.cfs_quota_us": str(quota)}
            self._quota_file, self._no_quota = "cpu.cfs_quota_us", "-1"
        else:
            self._group = _GROUPS / name
            control = _GROUPS / "cgroup.subtree_control"
            if "cpu" not in control.read_text().split():
                control.write_text("+cpu")
            limits = {"cpu.max": f"{quota} {_PERIOD_MICROSECONDS}"}
            self._quota_file, self._no_quota = "cpu.max", "max"
        self._group.mkdir()
        for file, value in limits.items():
            (self._group / file).write_text(value)

    def hold_back(self, run: RunInProgress) -> None:
        """Put the engine and what it started into the group."""
        for pid in run.engine_processes():
            (self._group / "cgroup.procs").write_text(str(pid))

    def remove(self) -> None:
        """The processes have been killed; those that are held back go as soon as they are not any more."""
        (self._group / self._quota_file).write_text(self._no_quota)

        def removed() -> bool:
            with suppress(OSError):
                self._group.rmdir()
            return not self._group.exists()

        wait_until(removed, "the end of the held-back processes")


@contextmanager
def neighbours() -> Iterator["list[subprocess.Popen[bytes]]"]:
    """A place for processes that hammer a drive; they are gone when the block ends."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def hammer(drive: AgingDrive) -> "subprocess.Popen[bytes]":
    """A foreign fio, which writes to the same drive as fast as it can."""
    job = "--name=other --rw=write --bs=64k --size=256m --direct=1 --ioengine=psync --numjobs=4 --thread"
    command = ["fio", *job.split(), "--time_based", "--runtime=60", f"--directory={drive.mount_point}"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def limit_dirty_pages(drive: AgingDrive, limit_bytes: int) -> None:
    """How much of the page cache may be dirty with data of this drive alone."""
    for number in (Path("/sys/block") / str(drive.device) / "dev").read_text().split():
        control = Path("/sys/class/bdi") / number
        assert (control / "strict_limit").exists(), "limits of dirty pages by drive need Linux 6.2 or later"
        (control / "strict_limit").write_text("1")
        (control / "max_bytes").write_text(str(limit_bytes))


@dataclass(slots=True)
class DriveWatch:
    """Reads an aging drive's metrics at every full second, as a Prometheus would."""

    drive: AgingDrive
    readings: dict[int, dict[str, float]] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> "DriveWatch":
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.is_set():
            second = int(time.time())
            text = httpx.get(f"{self.drive.url}/metrics", trust_env=False).text
            values = {
                line.partition("{")[0].removeprefix("cliffwatch_"): float(line.rpartition(" ")[2])
                for line in text.splitlines()
                if line.startswith("cliffwatch_drive_") and "_bucket" not in line
            }
            self.readings[second] = values
            self._stop.wait(max(0.0, second + 1 - time.time()))

    def amplification(self, seconds: int = 2) -> float:
        """Of the last so many seconds; 1 while nothing was written."""
        moments = sorted(self.readings)
        if len(moments) <= seconds:
            return 1.0
        last, first = self.readings[moments[-1]], self.readings[moments[-1 - seconds]]
        host = last["drive_host_written_bytes_total"] - first["drive_host_written_bytes_total"]
        return (
            (last["drive_media_written_bytes_total"] - first["drive_media_written_bytes_total"]) / host if host else 1.0
        )

    def write_telemetry(self, journal: Path, load_start: float) -> None:
        """Into the journal, in place of what a Prometheus that scraped the drive would have given."""
        moments = [second for second in sorted(self.readings) if second >= load_start]
        seconds = range(int(load_start), moments[-1] + 1)
        # A second whose reading came late has the one before it.
        filled: list[dict[str, float]] = []
        for second in seconds:
            filled.append(self.readings.get(second) or (filled[-1] if filled else self.readings[moments[0]]))
        names = ("drive_host_written_bytes_total", "drive_media_written_bytes_total", "drive_free_blocks_ratio")
        assert self.drive.device is not None
        write_telemetry(
            journal, load_start, 1.0, {(name, self.drive.device): [each[name] for each in filled] for name in names}
        )
