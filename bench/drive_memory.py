"""Growth of the emulated drive's memory under load, over ten minutes or as many seconds as are given:

python -m bench.drive_memory 3600
"""

import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from bench.drive import MEMORY
from bench.figures import Figure
from testkit.emulated import build, emulated_drive

SECONDS = 600
SAMPLE_SECONDS = 1.0
#: The content is rewritten several times a minute, so that cleaning, metrics and all queues are at work.
FLAGS = "--capacity=64MiB --pages-per-block=64 --channels=2 --dies-per-channel=4"
LOAD = "--rw=randrw --rwmixread=30 --bs=16k --iodepth=8 --rate_iops=300,700 --fdatasync=100"


def resident_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) * 1024


def samples(seconds: float) -> list[tuple[float, int]]:
    """Seconds since the load began and resident bytes, once a second. Metrics are read each time, as in a stack."""
    with (
        tempfile.TemporaryDirectory(dir=MEMORY, prefix="cliffwatch-bench-") as place,
        emulated_drive(Path(place) / "drive", *FLAGS.split()) as drive,
    ):
        command = ["fio", "--name=load", f"--filename={drive.node}", "--direct=1", "--ioengine=libaio", *LOAD.split()]
        load = subprocess.Popen(
            [*command, "--norandommap", "--time_based", f"--runtime={seconds:.0f}"], stdout=subprocess.DEVNULL
        )
        began = time.monotonic()
        taken = []
        while load.poll() is None:
            drive.ask("GET", "/latencies")
            drive.ask("GET", "/health")
            taken.append((time.monotonic() - began, resident_bytes(drive.pid)))
            time.sleep(SAMPLE_SECONDS)
        if load.returncode != 0:
            raise RuntimeError(f"fio ended with status {load.returncode}")
    return taken


def figures(seconds: float = SECONDS) -> list[Figure]:
    """Memory at the end, and its growth since the first fifth, by when every page and every path has been used."""
    build()
    taken = samples(seconds)
    settled = [sample for sample in taken if sample[0] >= seconds / 5]
    tenth = max(len(settled) // 10, 1)
    first = statistics.median(size for _, size in settled[:tenth])
    last = statistics.median(size for _, size in settled[-tenth:])
    slope = statistics.linear_regression(*zip(*settled, strict=True)).slope
    grown = sum(later > earlier for (_, earlier), (_, later) in pairwise(settled))
    print(f"# {first / 1e6:.2f} MB, at the end {last / 1e6:.2f} MB; larger than a second before {grown} times")
    print(f"# fitted line over {settled[-1][0] - settled[0][0]:.0f} s: {slope * 3600 / 1e6:+.3f} MB an hour")
    return [
        Figure("drive under load: memory at the end / once settled", last / first, "", 1.01),
        Figure("drive under load: memory", last / 1e6, "MB", 50),
    ]


if __name__ == "__main__":
    for figure in figures(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS):
        print(figure)
