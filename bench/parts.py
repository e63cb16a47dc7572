"""Cost of a window of many parts: reading their lines, merging them, and committing the merged window to the journal.

Each of 1,000 parts measures seven latencies, with 1,000 operations of each in a window of 10 s. A process of its own
does it for some windows in turn. `python -m bench.parts` prints processor time and memory.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from bench.figures import Figure

from cliffwatch.base.histogram import Histogram
from cliffwatch.coordinator.engine_names import NameLimit
from cliffwatch.coordinator.part_windows import PartWindows
from cliffwatch.journal.windows import WindowLog
from cliffwatch.model.window import EngineWindow, format_engine_line, parse_engine_line

PARTS, LATENCIES, OPERATIONS, WINDOWS, SECONDS = 1_000, 7, 1_000, 4, 10.0
#: Different histograms, of which each part has some: making them takes longer than all that is measured.
_DIFFERENT = 50
_MEGABYTE = 1024


def figures() -> list[Figure]:
    """Processor time of a window of 1,000 parts, and the memory that the process needs at most."""
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(
            [sys.executable, "-m", "bench.parts", directory], capture_output=True, text=True, check=True
        )
    merging, committing, megabytes = json.loads(done.stdout)
    what = f"{PARTS:,} parts × {LATENCIES} latencies"
    return [
        Figure(f"window of {what}: read and merge", merging, "s", 1.0),
        Figure(f"window of {what}: commit to the journal", committing, "s", 1.0),
        Figure(f"window of {what}: memory", megabytes, "MB", 200.0),
    ]


def lines_of(window: int, different: list[Histogram]) -> Iterator[str]:
    """The parts' lines of a window."""
    start = window * SECONDS
    for part in range(PARTS):
        first = part + window
        latency = {f"latency{each}": different[(first + 7 * each) % len(different)] for each in range(LATENCIES)}
        counters = {"operations": LATENCIES * OPERATIONS, "bytes": 1 << 20, "errors": 0}
        yield format_engine_line(EngineWindow(start, start + SECONDS, counters, {}, latency), window)


def measured(directory: Path) -> tuple[float, float, float]:
    """Seconds of processor time for merging and for committing a window, and the megabytes used beyond the start."""
    random = np.random.default_rng(1)
    different = []
    for _ in range(_DIFFERENT):
        histogram = Histogram()
        latencies = random.lognormal(np.log(0.009), 0.45, OPERATIONS) * 1e9
        histogram.record_many(np.rint(latencies).astype(np.int64))
        different.append(Histogram.decode(histogram.encode()))
    names = [f"part-{number}" for number in range(PARTS)]
    waiting = PartWindows(dict.fromkeys(names, ()), SECONDS, 0.0)
    limit, log = NameLimit(PARTS), WindowLog(directory, 0.0)
    merging = committing = 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for window in range(WINDOWS):
        for name, line in zip(names, lines_of(window, different), strict=True):
            begun = time.process_time()
            record = parse_engine_line(line)
            assert isinstance(record, EngineWindow), "these are lines of windows"
            waiting.take(name, record)
            merging += time.process_time() - begun
        begun = time.process_time()
        (merged,) = waiting.due((window + 1) * SECONDS)
        merging += time.process_time() - begun
        assert limit.fit(merged) == []
        begun = time.process_time()
        committed = log.append(merged, "load")
        committing += time.process_time() - begun
        assert len(committed.latency) == LATENCIES * (PARTS + 1)
    log.close()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return merging / WINDOWS, committing / WINDOWS, (after - before) / _MEGABYTE


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measured(Path(sys.argv[1]))))
    else:
        print(*figures(), sep="\n")
