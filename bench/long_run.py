"""A 36 h run in virtual time: growth of its worker's memory and open files, journal size, and time to report."""

import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure
from testkit.process_cost import cost_of
from testkit.worker_runs import queue_run, start_worker

from cliffwatch.journal import JournalReader, files

WINDOWS = 12_960
FIRST_HOUR_WINDOWS = 360


@dataclass(frozen=True, slots=True)
class Sample:
    """Memory and open files of a worker once `windows` were committed."""

    windows: int
    memory_bytes: int
    open_files: int


def sample(pid: int, directory: Path) -> Sample | None:
    """Measure a worker; None once its process is gone."""
    cost = cost_of(pid)
    last = JournalReader(directory).last_window()
    return None if cost is None else Sample(last.seq + 1 if last else 0, cost.memory_bytes, cost.open_files)


def watch(directory: Path) -> list[Sample]:
    """Execute the run; returns samples of the worker while it commits windows."""
    worker = start_worker(directory)
    samples = []
    while worker.poll() is None:
        taken = sample(worker.pid, directory)
        if taken is not None and 0 < taken.windows < WINDOWS:
            samples.append(taken)
        time.sleep(0.05)
    if worker.returncode != 0:
        raise RuntimeError(f"the worker ended with status {worker.returncode}")
    return samples


def figures() -> list[Figure]:
    base = Path(tempfile.mkdtemp(prefix="cliffwatch-bench-"))
    try:
        directory = queue_run(
            base / "long",
            {"time": "virtual", "cliff_after": "12h"},
            window="10s",
            phases={"warm_up": "1h", "baseline": "1h", "soak": "34h"},
        )
        samples = watch(directory)
        first = next(item for item in samples if item.windows >= FIRST_HOUR_WINDOWS)
        last = samples[-1]
        later = [item for item in samples if item.windows >= FIRST_HOUR_WINDOWS]
        journal_bytes = sum((directory / name).stat().st_size for name in (files.WINDOWS, files.LATENCY, files.EVENTS))
        started = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "cliffwatch.report", str(directory)], check=True, stdout=subprocess.DEVNULL
        )
        report_seconds = time.perf_counter() - started
        report_bytes = (directory / files.REPORT_HTML).stat().st_size
    finally:
        shutil.rmtree(base)
    # The least of many samples: in some, a heartbeat or an event is being written.
    tenth = len(later) // 10 + 1
    growth = min(item.open_files for item in later[-tenth:]) - min(item.open_files for item in later[:tenth])
    return [
        Figure("36 h run: worker memory at the end / after one hour", last.memory_bytes / first.memory_bytes, "", 1.05),
        Figure("36 h run: worker memory at the end", last.memory_bytes / 1e6, "MB", 120),
        Figure("36 h run: growth of the worker's open files", growth, "", 0),
        Figure("36 h run: journal", journal_bytes / 1e6, "MB", 60),
        Figure("36 h run: time to make the report", report_seconds, "s", 10),
        Figure("36 h run: report.html", report_bytes / 1e6, "MB", 5),
    ]
