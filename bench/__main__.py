"""`make bench`: measure every figure that docs/figures.md states, and report which targets are reached.

`python -m bench NAME…` measures only those.
"""

import sys
from collections.abc import Callable

from bench import (
    api,
    detection,
    drive,
    drive_memory,
    fio,
    install,
    kafka,
    kafka_outage,
    kills,
    long_run,
    pages,
    parts,
    simulator,
    stack,
    storage,
    storage_rolls,
)
from bench.ebpf import probe_cost, probe_missed
from bench.figures import Figure

BENCHMARKS: dict[str, Callable[[], list[Figure]]] = {
    "long-run": long_run.figures,
    "parts": parts.figures,
    "kills": kills.figures,
    "api": api.figures,
    "fio": fio.figures,
    "kafka": kafka.figures,
    "kafka-outage": kafka_outage.figures,
    "ebpf": probe_cost.figures,
    "ebpf-missed": probe_missed.figures,
    "stack": stack.figures,
    "detection": detection.figures,
    "simulator": simulator.figures,
    "drive": drive.figures,
    "drive-memory": drive_memory.figures,
    "storage": storage.figures,
    "storage-rolls": storage_rolls.figures,
    "pages": pages.figures,
    "install": install.figures,
}


def main(names: list[str]) -> int:
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        print(
            f"there is no benchmark {', '.join(sorted(unknown))}; benchmarks: {', '.join(BENCHMARKS)}", file=sys.stderr
        )
        return 2
    missed = 0
    for name in names or BENCHMARKS:
        for figure in BENCHMARKS[name]():
            print(figure, flush=True)
            missed += not figure.is_reached
    print(f"# {missed} figures missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
