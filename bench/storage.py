"""The storage engine against fio with the same pattern on the same file system, in turn: throughput, and CPU per byte.

The engine's target rate is far above what it can reach, so that it runs as fast as possible; the excess is shed. Its
records have identity and checksum, fio's blocks do not.
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import Figure
from testkit.storage_engine import Running, load_of, running

from cliffwatch.engines.storage.load import StorageLoad

PAIRS = 6
SECONDS = 5
FILES = 288
GIGABYTE = 1e9
#: Far more than any drive takes.
BEYOND = "100GB"


@dataclass(frozen=True, slots=True)
class Work:
    """Bytes a second, and CPU-seconds for each gigabyte."""

    bytes_per_second: float
    cpu_per_gigabyte: float


@dataclass(frozen=True, slots=True)
class Pattern:
    """A write pattern, as options of fio and as a load of the engine."""

    name: str
    fio: dict[str, str]
    load: dict[str, Any]


SYNCED = Pattern(
    "288 files, 16 KiB past the page cache, synced each",
    {"bs": "16k", "direct": "1", "fdatasync": "1", "numjobs": str(FILES), "size": "16m"},
    {
        "partitions": FILES,
        "record_size": "1KiB",
        "batch_records": 16,
        "retention_size": "9GiB",
        "style_changes": {"segment_size": "16MiB", "preallocation": "16MiB", "segment_jitter": 0, "coalesce": False},
    },
)
BUFFERED = Pattern(
    "1 MiB buffered, sequential",
    # Larger than fio can write in the time: rewriting pages that are dirty already would cost nothing. fio's default
    # preallocation is off: a broker's file grows with each write, and so does the engine's here.
    {"bs": "1m", "direct": "0", "numjobs": "1", "size": "16g", "fallocate": "none"},
    {
        "style": "kafka",
        "partitions": 1,
        "record_size": "1KiB",
        "batch_records": 1024,
        "retention_size": "9GiB",
        "style_changes": {
            "segment_size": "4GiB",
            "index_interval": "0B",
            "snapshot_size": "0B",
            "sync_on_roll": False,
            "threads": 1,
        },
    },
)


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _settle() -> None:
    """Flush what the previous measurement left in the page cache to the drive."""
    os.sync()
    time.sleep(1)


def fio_work(pattern: Pattern, directory: Path) -> Work:
    """Throughput and CPU cost of fio by itself, through io_uring."""
    directory.mkdir()
    options = [f"--{name}={value}" for name, value in pattern.fio.items()]
    common = ["--name=w", "--rw=write", "--ioengine=io_uring", "--thread", "--time_based", "--group_reporting"]
    command = ["fio", *common, *options, f"--runtime={SECONDS}", f"--directory={directory}", "--output-format=json"]
    before = _cpu_seconds()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    used = _cpu_seconds() - before
    shutil.rmtree(directory)
    written = json.loads(done.stdout)["jobs"][0]["write"]
    return Work(written["io_bytes"] / (written["runtime"] / 1000), used / (written["io_bytes"] / GIGABYTE))


def engine_work(pattern: Pattern, directory: Path) -> Work:
    """Throughput and CPU cost of the engine's program by itself."""
    load = load_of(**pattern.load, rate=BEYOND, burst_limit="1s", verify_size="0B")
    before = _cpu_seconds()
    with running(load, directory, SECONDS, window_seconds=1.0) as at_work:
        outcome = at_work.finish()
    used = _cpu_seconds() - before
    shutil.rmtree(directory)
    if outcome.status != 0:
        raise RuntimeError(outcome.error)
    written = outcome.counters["bytes"]
    return Work(written / SECONDS, used / (written / GIGABYTE))


def _compare(pattern: Pattern, base: Path) -> list[Figure]:
    throughput, cpu = [], []
    # The first run gets its pages from what the page cache held before, or from a hypervisor: a cost of neither side.
    for warm_up in (fio_work, engine_work):
        warm_up(pattern, base / "data")
    for number in range(PAIRS):
        # A drive that is slower the second time must not favour either.
        measures: list[Callable[[Pattern, Path], Work]] = [fio_work, engine_work]
        found = {}
        for measure in measures if number % 2 else reversed(measures):
            _settle()
            found[measure] = measure(pattern, base / "data")
        fio, engine = found[fio_work], found[engine_work]
        throughput.append(engine.bytes_per_second / fio.bytes_per_second)
        cpu.append(engine.cpu_per_gigabyte / fio.cpu_per_gigabyte)
        print(
            f"# {pattern.name}: fio {fio.bytes_per_second / 1e6:,.0f} MB/s, {fio.cpu_per_gigabyte:.2f} CPU-s/GB; "
            f"storage {engine.bytes_per_second / 1e6:,.0f} MB/s, {engine.cpu_per_gigabyte:.2f} CPU-s/GB",
            flush=True,
        )
    return [
        Figure(f"storage / fio, {pattern.name[:24]}: rate", statistics.median(throughput), "", 1.0, at_least=True),
        Figure(f"storage / fio, {pattern.name[:24]}: CPU a byte", statistics.median(cpu), "", 1.0),
    ]


def _resident_megabytes(at_work: Running) -> float:
    pages = int(Path(f"/proc/{at_work.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _many_partitions(base: Path) -> list[Figure]:
    """Memory with 10,000 partitions, and the difference of the achieved rate from the target."""
    seconds, rate = 20, 10_000_000
    load: StorageLoad = load_of(
        partitions=10_000,
        rate=f"{rate}B",
        retention_size="4GiB",
        style_changes={"segment_size": "192KiB", "preallocation": "0B"},
        verify_size="0B",
    )
    with running(load, base / "data", 1, flags=("--prepare",)) as preparing:
        preparing.finish()
    resident = 0.0
    with running(load, base / "data", seconds, window_seconds=1.0) as at_work:
        for _ in range(seconds):
            at_work.read_until("window")
            resident = max(resident, _resident_megabytes(at_work))
        outcome = at_work.finish()
    shutil.rmtree(base / "data")
    off = abs(outcome.counters["bytes"] / seconds / rate - 1)
    return [
        Figure("storage, 10,000 partitions: memory", resident, "MB", 200),
        Figure("storage, 10,000 partitions: rate off what was asked for", off * 100, "%", 1.0),
    ]


def figures() -> list[Figure]:
    base = Path(tempfile.mkdtemp(prefix="cliffwatch-bench-", dir="/var/tmp"))
    try:
        return [*_compare(SYNCED, base), *_compare(BUFFERED, base), *_many_partitions(base)]
    finally:
        shutil.rmtree(base)
