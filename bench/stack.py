"""What the whole stack costs while nothing is run: service, Prometheus, Alertmanager, node_exporter and the probe."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import Figure
from testkit.ports import free_port

from cliffwatch.cli.daemon import find_daemon
from cliffwatch.model.settings import read_settings
from cliffwatch.stack.processes import watchers

SETTLE_SECONDS = 30
MEASURE_SECONDS = 60
PORTS = ("LISTEN", "PROMETHEUS", "NODE_EXPORTER", "EBPF_EXPORTER", "DRIVE_EXPORTER", "ALERTMANAGER")
_COMMAND = str(Path(sys.executable).with_name("cliffwatch"))
_PROBE = Path(__file__).parents[1] / ".cliffwatch" / "ebpf"


def cpu_seconds(pid: int) -> float:
    """User and system time of a process; see proc(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_bytes(pid: int) -> int:
    """Memory in proportion: pages shared with others are divided among them."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("Pss:")).split()[1]) * 1024


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
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        time.sleep(MEASURE_SECONDS)
        shares = {name: (cpu_seconds(pid) - before[name]) / MEASURE_SECONDS for name, pid in pids.items()}
        memory = {name: memory_bytes(pid) / 1e6 for name, pid in pids.items()}
    finally:
        subprocess.run([_COMMAND, "down"], env=environment, check=False, stdout=subprocess.DEVNULL)
        shutil.rmtree(state)
    for name in pids:
        print(f"# {name}: {shares[name]:.2%} of a core, {memory[name]:.0f} MB")
    return [
        Figure("idle stack: CPU, of one core", sum(shares.values()) * 100, "%", 3),
        Figure("idle stack: memory", sum(memory.values()), "MB", 400),
    ]
