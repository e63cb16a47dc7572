"""What the block layer saw of a load: the kernel's own counters, and the probe's histogram of request sizes."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testkit.loops import MIB, LoopDrive, command, loop_drive, mounted
from testkit.probe import Probe, Scrape

from cliffwatch.machine.diskstats import DeviceCounters, read_counters

SIZE = "request_size_bytes"
QUARTERS = (0.25, 0.5, 0.75)
#: The probe publishes every 0.25 s, and a broker's background threads are done when nothing was written for so long.
QUIET_SECONDS = 1.0
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class BlockTraffic:
    """Writes and flushes of a load that appended `record_bytes`; `sizes` counts writes by the upper bound of their
    bucket."""

    record_bytes: int
    written_bytes: int
    writes: int
    flushes: int
    sizes: dict[float, float]

    @property
    def figures(self) -> dict[str, float]:
        """What a style is held to, relative to the records appended."""
        mebibytes = self.record_bytes / MIB
        first, second, third = (self.size_at(quarter) for quarter in QUARTERS)
        return {
            "bytes written per record byte": self.written_bytes / self.record_bytes,
            "writes per MiB of records": self.writes / mebibytes,
            "flushes per MiB of records": self.flushes / mebibytes,
            "mean write, bytes": self.written_bytes / self.writes,
            "a quarter of the bytes in writes up to": first,
            "half of the bytes in writes up to": second,
            "three quarters of the bytes in writes up to": third,
        }

    @property
    def shares(self) -> dict[float, float]:
        """The share of each bucket in all writes."""
        total = sum(self.sizes.values())
        return {bound: count / total for bound, count in self.sizes.items()}

    def size_at(self, share: float) -> float:
        """The bucket up to which writes carry this share of all bytes, a write taken to be as long as its bucket."""
        wanted = share * sum(bound * count for bound, count in self.sizes.items())
        carried = 0.0
        for bound, count in sorted(self.sizes.items()):
            carried += bound * count
            if carried >= wanted:
                return bound
        return math.inf


def apart(one: BlockTraffic, other: BlockTraffic) -> float:
    """The share of writes that would have to be of another size for both distributions to be the same."""
    bounds = one.sizes.keys() | other.sizes.keys()
    return sum(abs(one.shares.get(bound, 0.0) - other.shares.get(bound, 0.0)) for bound in bounds) / 2


@dataclass(frozen=True, slots=True)
class Reading:
    """Both sources at one moment."""

    counters: DeviceCounters
    scrape: Scrape


@dataclass(frozen=True, slots=True)
class Watched:
    """A drive that is mounted and whose requests are counted."""

    drive: LoopDrive
    mount_point: Path
    probe: Probe

    def read(self) -> Reading:
        """Once all that was appended is on the drive, and no process writes there."""
        command("sync", "--file-system", self.mount_point)
        deadline = time.monotonic() + PATIENCE_SECONDS
        before, now = None, self._counters()
        while before is None or (before.write_operations, before.flush_operations) != (
            now.write_operations,
            now.flush_operations,
        ):
            assert time.monotonic() < deadline, "a process keeps writing to the drive"
            time.sleep(QUIET_SECONDS)
            before, now = now, self._counters()
        return Reading(now, self.probe.scrape())

    def since(self, before: Reading, record_bytes: int) -> BlockTraffic:
        """What was counted since `before`, while so many bytes of records were appended."""
        after = self.read()
        counted = after.counters - before.counters
        return BlockTraffic(
            record_bytes,
            counted.write_bytes,
            counted.write_operations,
            counted.flush_operations,
            after.scrape.counts(SIZE, self.drive.name, "write", before.scrape),
        )

    def _counters(self) -> DeviceCounters:
        number = Path(f"/sys/block/{self.drive.name}/dev").read_text().strip()
        return read_counters([number])[number]


@contextmanager
def watched_drive(probe: Probe, directory: Path, size_bytes: int = 1024 * MIB) -> Iterator[Watched]:
    """An empty ext4, which puts nothing off to be written later, on a loop device below a new `directory`.

    The device's backing file is written past the page cache, so that only the file system's own takes part.
    """
    directory.mkdir()
    file = directory / "drive.img"
    options = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
    with loop_drive(file, size_bytes) as drive:
        command("losetup", "--direct-io=on", drive.node)
        command("mkfs.ext4", "-q", "-E", options, drive.node)
        with mounted(drive.node, directory / "mounted", "-o", "noatime") as mount_point:
            yield Watched(drive, mount_point, probe)
    file.unlink()


def table(columns: dict[str, BlockTraffic]) -> str:
    """Several loads side by side."""
    names = [f"{name:>16}" for name in columns]
    lines = [f"{'':46}{''.join(names)}"]
    for title in ("record_bytes", "written_bytes", "writes", "flushes"):
        lines.append(f"{title:46}" + "".join(f"{getattr(seen, title):>16,}" for seen in columns.values()))
    figures = [seen.figures for seen in columns.values()]
    for title in figures[0]:
        lines.append(f"{title:46}" + "".join(f"{each[title]:>16,.2f}" for each in figures))
    for bound in sorted({bound for seen in columns.values() for bound in seen.sizes}):
        title = f"share of writes up to {bound:,.0f} bytes"
        lines.append(f"{title:46}" + "".join(f"{seen.shares.get(bound, 0.0):>16.1%}" for seen in columns.values()))
    return "\n".join(lines)
