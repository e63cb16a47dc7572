"""Share of completions that the block-layer probe misses, on this machine's own drive.

Misses come in bursts, of all completions of one interrupt, and become more frequent with more requests.
"""

import os
import tempfile
from pathlib import Path

from bench.figures import Figure
from testkit.probe import build, fio, running_probe

SECONDS = 60
#: The dashboard Watcher is red from here on.
MOST = 0.01
LOADS: dict[str, dict[str, str | int]] = {
    "direct": {"rw": "randwrite", "iodepth": 32},
    "buffered with syncs": {"rw": "randwrite", "direct": 0, "fdatasync": 8},
}


def figures() -> list[Figure]:
    """The share of requests that were missed, for each load."""
    build()
    with tempfile.TemporaryDirectory() as directory:
        device = _drive_below(Path(directory))
        return [
            Figure(f"completions that the probe missed, {load}", _share_missed(Path(directory), device, load), "", MOST)
            for load in LOADS
        ]


def _drive_below(directory: Path) -> str:
    """The drive, not the partition, on which the directory lies, such as `vda`."""
    number = directory.stat().st_dev
    node = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    if not node.exists():
        raise SystemExit(f"{directory} lies on no drive: set TMPDIR to a directory on one")
    return node.parent.name if (node / "partition").exists() else node.name


def _share_missed(directory: Path, device: str, load: str) -> float:
    settings = LOADS[load] | {"size": "512m", "time_based": 1, "runtime": SECONDS}
    with running_probe() as probe:
        before = probe.scrape()
        fio(directory / "load", (), None, **settings)
        # A miss is counted when the kernel reuses the request: under load, within moments.
        after = probe.scrape()
    name, labels = "missed_completions_total", {"device": device, "operation": "write"}
    missed = after.value(name, **labels) - before.value(name, **labels)
    seen = after.count("device_latency_seconds", device, "write") - before.count(
        "device_latency_seconds", device, "write"
    )
    print(f"# {load}: {missed:.0f} of {missed + seen:.0f} writes to {device} missed", flush=True)
    return missed / (missed + seen)


if __name__ == "__main__":
    for figure in figures():
        print(figure)
