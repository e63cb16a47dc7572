"""Monitoring overhead: throughput of fio through the engine against plain fio with the same job, in turn."""

import json
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from bench.figures import Figure
from testkit.worker_runs import execute_run, queue_run

from cliffwatch.journal import JournalReader
from cliffwatch.model.target import DirectoryTarget

PAIRS = 8
SECONDS = 10
#: Job of both: as many small writes as the file system takes, so that any monitoring overhead shows.
JOB = {
    "rw": "randwrite",
    "bs": "4k",
    "direct": "1",
    "ioengine": "libaio",
    "iodepth": "16",
    "size": "256m",
    "overwrite": "1",
}


def plain_operations_per_second(directory: Path) -> float:
    """Operations per second of fio by itself."""
    directory.mkdir()
    options = [f"--{name}={value}" for name, value in JOB.items()]
    common = ["--name=w", "--thread", "--time_based", "--randrepeat=0", "--norandommap", "--refill_buffers"]
    done = subprocess.run(
        ["fio", *common, *options, f"--runtime={SECONDS}", "--output-format=json", f"--directory={directory}"],
        check=True,
        capture_output=True,
        text=True,
    )
    shutil.rmtree(directory)
    return float(json.loads(done.stdout)["jobs"][0]["write"]["iops"])


def watched_operations_per_second(base: Path, number: int) -> float:
    """Operations per second of the same job executed as a run, over the seconds that the run's windows measured."""
    job = "[w]\n" + "".join(f"{name}={value}\n" for name, value in JOB.items())
    directory = queue_run(
        base / f"run-{number}",
        {"job": job},
        DirectoryTarget(path=str(base)),
        engine="fio",
        window="1s",
        phases={"soak": f"{SECONDS}s"},
    )
    execute_run(directory)
    windows = list(JournalReader(directory).windows())
    operations = sum(window.counters["operations"] for window in windows)
    return operations / sum(window.seconds for window in windows)


def figures() -> list[Figure]:
    base = Path(tempfile.mkdtemp(prefix="cliffwatch-bench-"))
    ratios = []
    try:
        for number in range(PAIRS):
            # A drive that is slower the second time must not favour either.
            if number % 2:
                plain = plain_operations_per_second(base / "plain")
                watched = watched_operations_per_second(base, number)
            else:
                watched = watched_operations_per_second(base, number)
                plain = plain_operations_per_second(base / "plain")
            ratios.append(watched / plain)
            print(f"# plain fio {plain:,.0f} operations/s, through the engine {watched:,.0f}: {watched / plain:.3f}")
    finally:
        shutil.rmtree(base)
    median = statistics.median(ratios)
    return [Figure("fio through the engine / plain fio: throughput, median", median, "", 0.98, at_least=True)]
