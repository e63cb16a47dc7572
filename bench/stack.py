"""CPU and memory of the whole stack without a run: service, Prometheus, Alertmanager, node_exporter and the probe."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import Figure
from testkit.ports import free_port
from testkit.process_cost import ProcessCost, cost_of

from cliffwatch.cli.daemon import find_daemon
from cliffwatch.model.settings import read_settings
from cliffwatch.stack.processes import watchers

SETTLE_SECONDS = 30
MEASURE_SECONDS = 60
PORTS = ("LISTEN", "PROMETHEUS", "NODE_EXPORTER", "EBPF_EXPORTER", "DRIVE_EXPORTER", "ALERTMANAGER")
_COMMAND = str(Path(sys.executable).with_name("cliffwatch"))
_PROBE = Path(__file__).parents[1] / ".cliffwatch" / "ebpf"


def costs(pids: dict[str, int]) -> dict[str, ProcessCost]:
    found = {name: cost_of(pid) for name, pid in pids.items()}
    gone = [name for name, cost in found.items() if cost is None]
    if gone:
        raise RuntimeError(f"no longer there: {', '.join(gone)}")
    return {name: cost for name, cost in found.items() if cost is not None}


def figures() -> list[Figure]:
    state = Path(tempfile.mkdtemp(prefix="cliffwatch-bench-"))
    ports = {f"CLIFFWATCH_{name}_PORT": str(free_port()) for name in PORTS}
    environment = os.environ | ports | {"CLIFFWATCH_STATE_DIRECTORY": str(state)}
    # The probe was built for the checkout; it is the same whatever state directory it is started from.
    (state / "ebpf").symlink_to(_PROBE)
    try:
        subprocess.run([_COMMAND, "up"], env=environment, check=True, stdout=subprocess.DEVNULL)
        daemon = find_daemon(state)
        assert daemon is not None, "the service was started"
        found = watchers(read_settings(state_directory=state))
        pids = {"service": daemon.process.pid}
        pids |= {name: watcher.process.pid for name, watcher in found.items() if watcher.process is not None}
        time.sleep(SETTLE_SECONDS)
        before = costs(pids)
        time.sleep(MEASURE_SECONDS)
        after = costs(pids)
        shares = {name: (after[name].cpu_seconds - before[name].cpu_seconds) / MEASURE_SECONDS for name in pids}
        memory = {name: after[name].memory_bytes / 1e6 for name in pids}
    finally:
        subprocess.run([_COMMAND, "down"], env=environment, check=False, stdout=subprocess.DEVNULL)
        shutil.rmtree(state)
    for name in pids:
        print(f"# {name}: {shares[name]:.2%} of a core, {memory[name]:.0f} MB")
    return [
        Figure("idle stack: CPU, of one core", sum(shares.values()) * 100, "%", 3),
        Figure("idle stack: memory", sum(memory.values()), "MB", 400),
    ]
