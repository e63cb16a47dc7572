"""What the block layer saw of a load: the kernel's own counters and the probe's histogram of request sizes."""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.drives.loops import MIB, LoopDrive, command, loop_drive, mounted
from tests.exporters.ebpf.probe import Probe, Scrape

from cliffwatch.drives.diskstats import DeviceCounters, read_counters

SIZE = "request_size_bytes"
LATENCY = "device_latency_seconds"


@dataclass(frozen=True, slots=True)
class Seen:
    """Writes and flushes of one load that appended `record_bytes`; `sizes` are requests by the bucket they lie in."""

    record_bytes: int
    written_bytes: int
    writes: int
    flushes: int
    sizes: dict[float, float]

    @property
    def written_per_record_byte(self) -> float:
        return self.written_bytes / self.record_bytes

    @property
    def writes_per_mebibyte(self) -> float:
        return self.writes * MIB / self.record_bytes

    @property
    def flushes_per_mebibyte(self) -> float:
        return self.flushes * MIB / self.record_bytes

    @property
    def mean_request_bytes(self) -> float:
        return self.written_bytes / self.writes

    @property
    def shares(self) -> dict[float, float]:
        """The share of each bucket in all requests."""
        total = sum(self.sizes.values())
        return {bound: count / total for bound, count in self.sizes.items()}


def apart(one: Seen, other: Seen) -> float:
    """The share of requests that would have to be of another size for both distributions to be the same."""
    bounds = one.shares.keys() | other.shares.keys()
    return sum(abs(one.shares.get(bound, 0.0) - other.shares.get(bound, 0.0)) for bound in bounds) / 2


@dataclass(frozen=True, slots=True)
class Reading:
    """Both sources at one moment."""

    counters: DeviceCounters
    scrape: Scrape


@dataclass(frozen=True, slots=True)
class Watched:
    """A loop device whose requests are counted."""

    drive: LoopDrive
    probe: Probe

    def read(self) -> Reading:
        """Once all that was written before is on the device, and the probe has told of as much as the kernel."""
        os.sync()
        number = Path(f"/sys/block/{self.drive.name}/dev").read_text().strip()
        counters = read_counters([number])[number]
        return Reading(counters, self.probe.scrape())

    def since(self, before: Reading, record_bytes: int) -> Seen:
        """What was counted since `before`, in which so many bytes of records were appended."""
        after = self.read()
        counted = after.counters - before.counters
        now, earlier = (_buckets(each.scrape, self.drive.name) for each in (after, before))
        below = 0.0
        sizes = {}
        for bound in sorted(now):
            upto = now[bound] - earlier.get(bound, 0.0)
            if upto > below:
                sizes[bound] = upto - below
            below = upto
        return Seen(record_bytes, counted.write_bytes, counted.write_operations, counted.flush_operations, sizes)


def _buckets(scrape: Scrape, device: str) -> dict[float, float]:
    found = {}
    for labels, value in scrape.series(f"{SIZE}_bucket").items():
        each = dict(labels)
        if (each["device"], each["operation"]) == (device, "write"):
            found[float(each["le"])] = value
    return found


@contextmanager
def direct_drive(file: Path, size_bytes: int) -> Iterator[LoopDrive]:
    """A loop device that bypasses the page cache of the file system below it: what it is given is written there."""
    with loop_drive(file, size_bytes) as drive:
        command("losetup", "--direct-io=on", drive.node)
        yield drive


@contextmanager
def fresh_file_system(drive: LoopDrive, mount_point: Path) -> Iterator[Path]:
    """An empty ext4, which writes nothing in the background that was put off when it was made."""
    put_off = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
    command("mkfs.ext4", "-q", "-F", "-E", put_off, drive.node)
    with mounted(drive.node, mount_point, "-o", "noatime") as mounted_at:
        yield mounted_at


def table(columns: dict[str, Seen]) -> str:
    """The figures of several loads side by side."""
    rows = {
        "bytes of records": lambda seen: f"{seen.record_bytes:,}",
        "bytes written": lambda seen: f"{seen.written_bytes:,}",
        "writes": lambda seen: f"{seen.writes:,}",
        "flushes": lambda seen: f"{seen.flushes:,}",
        "bytes written per record byte": lambda seen: f"{seen.written_per_record_byte:.3f}",
        "writes per MiB of records": lambda seen: f"{seen.writes_per_mebibyte:.2f}",
        "flushes per MiB of records": lambda seen: f"{seen.flushes_per_mebibyte:.2f}",
        "mean request": lambda seen: f"{seen.mean_request_bytes:,.0f}",
    }
    lines = [f"{'':32}" + "".join(f"{name:>16}" for name in columns)]
    lines += [f"{name:32}" + "".join(f"{of(seen):>16}" for seen in columns.values()) for name, of in rows.items()]
    bounds = sorted({bound for seen in columns.values() for bound in seen.sizes})
    for bound in bounds:
        title = "larger requests" if math.isinf(bound) else f"requests up to {bound:,.0f}"
        lines.append(f"{title:32}" + "".join(f"{seen.shares.get(bound, 0.0):>16.1%}" for seen in columns.values()))
    return "\n".join(lines)
