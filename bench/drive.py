"""The emulated drive: its throughput without timing, and how well its latencies agree with its model with timing.

**Fast.** ext4 on a loop device with direct I/O, once over the file that FUSE serves (timing off) and once over a plain
file. Both files' content lies in the same file system, in memory, so that neither the disk below nor the page cache
takes part in the comparison: a plain file there is as fast as a backing file can be. Runs come in pairs, one right
after the other, each side first in every other pair, and the median of the pairs' ratios counts.

**True.** Latency percentiles that fio, and the block-layer probe, measure on the loop device, against what the model
decided for the very same requests. The probe counts in buckets that double, so of its percentile only the bucket is
known; the nearer end of the bucket is compared.
"""

import json
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import Figure
from testkit.emulated import EmulatedDrive, attached, build, emulated_drive, file_system
from testkit.loops import MIB, command
from testkit.probe import Probe, Scrape, running_probe
from testkit.probe import build as build_probe

PAIRS = 7
SECONDS = 2
SIZE_BYTES = 1024 * MIB
MEMORY = Path("/dev/shm")  # noqa: S108 (a file system in memory, in which names are made at random)
RATIOS = {
    "128 KiB sequential writes, depth 8": (0.6, "--rw=write --bs=128k --iodepth=8 --size=512m"),
    "4 KiB random writes, depth 16": (0.35, "--rw=randwrite --bs=4k --iodepth=16 --size=512m"),
    "4 KiB random writes, depth 1": (0.35, "--rw=randwrite --bs=4k --iodepth=1 --size=512m"),
    "16 KiB writes with fdatasync, 8 jobs": (
        0.35,
        "--rw=write --bs=16k --iodepth=1 --fdatasync=1 --numjobs=8 --size=64m",
    ),
}

#: Allowed difference from the model: this share of its latency, plus this time.
SHARE = 0.05
ALLOWED_SECONDS = 100e-6
ROUNDS = 3
#: Real-time priority for the load, as for the drive: delays by a busy machine are not the drive's.
FIRST = ("chrt", "--rr", "1")
SHAPE = "--capacity=512MiB --pages-per-block=512 --channels=2 --dies-per-channel=2 --over-provisioning=0.2"
FIRST_OF_CLEANING = "writes while cleaning, depth 1"
TIMED = {
    "writes into the buffer, depth 1": "--rw=randwrite --bs=16k --iodepth=1 --rate_iops=1500",
    "writes into the buffer, depth 4": "--rw=randwrite --bs=16k --iodepth=4 --rate_iops=1500",
    "writes of part of a page, depth 1": "--rw=randwrite --bs=4k --iodepth=1 --rate_iops=1000",
    "reads, depth 1": "--rw=randread --bs=16k --iodepth=1",
    "reads, depth 8": "--rw=randread --bs=16k --iodepth=8 --rate_iops=4000",
    FIRST_OF_CLEANING: "--rw=randwrite --bs=16k --iodepth=1",
    "writes while cleaning, depth 8": "--rw=randwrite --bs=16k --iodepth=8",
}


def figures() -> list[Figure]:
    build()
    return [*speed(), *agreement()]


def speed() -> list[Figure]:
    """Ratio of throughput through FUSE to throughput without it."""
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="cliffwatch-bench-") as place, ExitStack() as stack:
        base = Path(place)
        drive = stack.enter_context(emulated_drive(base / "drive", f"--capacity={SIZE_BYTES}", "--timing=off"))
        plain = base / "plain"
        with plain.open("wb") as created:
            created.truncate(SIZE_BYTES)
        nodes = {"served": drive.node, "plain": stack.enter_context(attached(plain))}
        points = {side: stack.enter_context(file_system(node, base / f"files-{side}")) for side, node in nodes.items()}
        return [speed_of(name, points, least, job.split()) for name, (least, job) in RATIOS.items()]


def speed_of(name: str, points: dict[str, Path], least: float, job: list[str]) -> Figure:
    ratios = []
    for point in points.values():
        # Files are laid out first: allocating blocks is the file system's work, not the drive's.
        fio_jobs(f"--directory={point}", *job, "--overwrite=1", "--create_only=1")
        fio_jobs(f"--directory={point}", *job, "--overwrite=1")
    for pair in range(PAIRS):
        sides = list(points) if pair % 2 else list(reversed(points))
        bytes_per_second = {}
        for side in sides:
            run = fio_jobs(f"--directory={points[side]}", *job, "--overwrite=1", "--time_based", f"--runtime={SECONDS}")
            bytes_per_second[side] = float(run["write"]["bw_bytes"])
        ratios.append(bytes_per_second["served"] / bytes_per_second["plain"])
        print(
            f"# {name}: {bytes_per_second['served'] / 1e6:,.0f} of {bytes_per_second['plain'] / 1e6:,.0f} MB/s: "
            f"{ratios[-1]:.2f}",
            flush=True,
        )
    for point in points.values():
        for file in point.glob("load.*"):
            file.unlink()
    return Figure(f"drive without timing / plain file: {name}", statistics.median(ratios), "", least, at_least=True)


@dataclass(frozen=True, slots=True)
class Seen:
    """A latency percentile in seconds by the model, fio and the probe; the probe's as the bucket that holds it."""

    model: float
    fio: float
    probe_least: float
    probe_most: float

    @property
    def fio_error(self) -> float:
        """Difference from the model as a multiple of the allowed one: 1 is the limit."""
        return abs(self.fio - self.model) / self._allowed

    @property
    def probe_error(self) -> float:
        return max(0.0, self.probe_least - self.model, self.model - self.probe_most) / self._allowed

    @property
    def _allowed(self) -> float:
        return SHARE * self.model + ALLOWED_SECONDS


def agreement() -> list[Figure]:
    """Differences of fio's and the probe's percentiles from the model's, as multiples of the allowed difference."""
    build_probe()
    found: dict[tuple[str, str], list[Seen]] = {}
    with (
        tempfile.TemporaryDirectory(dir=MEMORY, prefix="cliffwatch-bench-") as place,
        running_probe() as probe,
        emulated_drive(Path(place) / "drive", *SHAPE.split()) as drive,
    ):
        fio_jobs(f"--filename={drive.node}", "--rw=write", "--bs=1m", "--iodepth=4")
        for case, job in TIMED.items():
            if case == FIRST_OF_CLEANING:
                # Until no superblock is clean any more.
                fio_jobs(f"--filename={drive.node}", "--rw=randwrite", "--bs=16k", "--iodepth=16", "--io_size=512m")
            for _ in range(ROUNDS):
                for quantile, seen in compare(drive, probe, job.split()).items():
                    found.setdefault((case, quantile), []).append(seen)
                    print(
                        f"# {case}, {quantile}: model {seen.model * 1e6:,.0f} µs, fio {seen.fio * 1e6:,.0f}, "
                        f"probe {seen.probe_least * 1e6:,.0f} to {seen.probe_most * 1e6:,.0f}",
                        flush=True,
                    )
    return [
        Figure(f"{who} against model, {quantile}, {case}", statistics.median(errors(seen, who)), "", 1)
        for who in ("fio", "probe")
        for (case, quantile), seen in found.items()
    ]


def errors(seen: list[Seen], who: str) -> list[float]:
    return [each.fio_error if who == "fio" else each.probe_error for each in seen]


def compare(drive: EmulatedDrive, probe: Probe, job: list[str]) -> dict[str, Seen]:
    operation = "read" if "--rw=randread" in job else "write"
    with counted(probe, drive.node.name, operation) as scrapes:
        drive.ask("DELETE", "/latencies")
        options = ("--time_based", f"--runtime={SECONDS}", "--norandommap")
        run = fio_jobs(f"--filename={drive.node}", *job, *options, before=FIRST)
    modelled = drive.ask("GET", "/latencies")[operation]
    before, after = scrapes
    bounds = after.bounds("device_latency_seconds", drive.node.name, operation)
    seen = {}
    for quantile, name, key in ((0.5, "p50_seconds", "50.000000"), (0.99, "p99_seconds", "99.000000")):
        bound = after.quantile("device_latency_seconds", drive.node.name, operation, quantile, before)
        below = max((other for other in bounds if other < bound), default=0.0)
        fio_seconds = float(run[operation]["lat_ns"]["percentile"][key]) / 1e9
        seen[f"p{quantile * 100:.0f}"] = Seen(float(modelled[name]), fio_seconds, below, bound)
    return seen


@contextmanager
def counted(probe: Probe, device: str, operation: str) -> Iterator[list[Scrape]]:
    """Scrapes before and after the block's load; the second has at least 99 % of the requests the kernel completed."""
    before, completed_before = probe.scrape(), completed(device, operation)
    scrapes = [before]
    yield scrapes

    def counted_since(scrape: Scrape) -> int:
        histogram = "device_latency_seconds"
        return scrape.count(histogram, device, operation) - before.count(histogram, device, operation)

    requests = completed(device, operation) - completed_before
    scrapes.append(probe.scrape_when(lambda scrape: counted_since(scrape) >= 0.99 * requests, counted_since))


def completed(device: str, operation: str) -> int:
    """Number of requests of the operation that the kernel has completed on the device."""
    fields = Path(f"/sys/block/{device}/stat").read_text().split()
    return int(fields[0 if operation == "read" else 4])


def fio_jobs(*arguments: str, before: Sequence[str] = ()) -> dict[str, Any]:
    """Run fio, prefixed with the command `before`; returns the JSON result of its jobs, merged into one."""
    common = [
        *before,
        "fio",
        "--name=load",
        "--output-format=json",
        "--group_reporting",
        "--direct=1",
        "--ioengine=libaio",
    ]
    output = command(*common, "--randrepeat=0", "--lat_percentiles=1", *arguments)
    job: dict[str, Any] = json.loads(output)["jobs"][0]
    return job
